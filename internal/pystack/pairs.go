package pystack

import "tieralloc/internal/raw"

// PairMax is how many pairs a table of them has room for, a power of two.
const PairMax = 1 << 16

// rowsLeast is how many rows a table with a pair has in use at least, a power of two.
const rowsLeast = 512

// pairs gives each pair of numbers that it meets the next number, from 1 on. Rows are used as pairs
// come, so that few pairs lie in few memory pages.
//
//	at[row] of a pair's hash, or of a row behind it, is the pair's number; row < rows
//	0 < n ⇒ rows is a power of two, n <= rows/2 <= PairMax
type pairs struct {
	raw.OffHeap
	n    uint32
	rows uint32              // that are in use
	at   [2 * PairMax]uint32 // by hash: the number of a pair, or 0
	pair [PairMax]pair       // number n is at n-1
}

type pair struct{ a, b uint32 }

// number returns the number of a pair, or 0 if there is no room for it.
func (p *pairs) number(a, b uint32) uint32 {
	if 2*p.n >= p.rows && p.n < PairMax {
		p.rehash(max(2*p.rows, rowsLeast))
	}
	q := pair{a, b}
	at := &p.at[p.row(q)&(2*PairMax-1)]
	if *at != 0 || p.n >= PairMax {
		return *at
	}
	p.pair[p.n&(PairMax-1)] = q
	p.n++
	*at = p.n
	return p.n
}

// row returns the row that has a pair, or the free one that would have it.
func (p *pairs) row(q pair) uint32 {
	row := uint32(mix(uint64(q.a)<<32 | uint64(q.b)))
	for range p.rows {
		row++
		n := p.at[row&(p.rows-1)&(2*PairMax-1)]
		if n == 0 || p.get(n) == q {
			break
		}
	}
	return row & (p.rows - 1)
}

// rehash empties the rows in use, and enters the pairs in so many.
func (p *pairs) rehash(rows uint32) {
	for row := range p.rows {
		p.at[row&(2*PairMax-1)] = 0
	}
	p.rows = rows
	for i := range p.n {
		p.at[p.row(p.pair[i&(PairMax-1)])&(2*PairMax-1)] = i + 1
	}
}

// get returns the pair of a number.
func (p *pairs) get(n uint32) pair { return p.pair[(n-1)&(PairMax-1)] }

func (p *pairs) clear() {
	p.n = 0
	p.rehash(0)
}
