package alloc

import "sync/atomic"

// runCounts is how much the pages' counts of blocks, which are of units in runs, are to be corrected, modulo 2^64.
type runCounts struct {
	allocs, frees [runClasses]uint64
}

// cut corrects what the counts of p say of blocks of k units each, all but one of which are on the spill list of class c: their time there counts for a free
// and their way from there for a block and a free of c.
func (r *runCounts) cut(p *Page, c, k uintptr, blocks uint64) {
	r.allocs[p.runClass(k)&(runClasses-1)] += blocks
	r.allocs[p.Class&(runClasses-1)] -= blocks * uint64(k)
	r.allocs[c&(runClasses-1)] -= blocks - 1
	r.frees[c&(runClasses-1)] -= blocks - 1
	t := p.table()
	t.allocs += 1 - blocks*uint64(k)
	t.frees += 1 - blocks
}

// freed is the same for one block of k units that has come back to the page's owner,
func (r *runCounts) freed(p *Page, k uintptr) {
	r.left(p, k)
	p.table().frees += 1 - uint64(k)
}

// or that another thread gives back.
func (r *runCounts) freedRemote(p *Page, k uintptr) {
	r.left(p, k)
	atomic.AddUint64(&p.table().remote, 1-uint64(k))
}

func (r *runCounts) left(p *Page, k uintptr) {
	r.frees[p.runClass(k)&(runClasses-1)]++
	r.frees[p.Class&(runClasses-1)] -= uint64(k)
}
