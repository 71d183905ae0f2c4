package alloc

import (
	"tieralloc/alloc/sizeclass"
	"tieralloc/tiers"
)

// retireCurrent is called when a current page may have become empty. Of empty pages of several
// slices the thread keeps the last, so that allocating and freeing large blocks in turn costs
// little. The one before it goes to the pool, which serves all classes, unless little of it was put
// to use (keepCurrent): a program that grows an array passes through many of these classes. A page
// of one block goes, too, the first steadyRun times that its class comes in a row. So a buffer
// whose size changes gets the same addresses each time, which the processor's caches have.
//
// A page of the class that realloc was to lengthen a block to last stays while the pages of others
// are kept: the next block that grows has room in it (offerKept).
//
//	Frees < Trigger <= max(Allocs, Frees+1) for a current page of several slices, but for
//	the one of retiredHeap and retiredClass, and those of Heap.kept
func (h *Heap) retireCurrent(p *Page) {
	if p.slices == 1 {
		return
	}
	if !p.allFree() {
		p.arm()
		return
	}
	if h.sampled { // such a page serves one block in so many
		h.dropCurrent(p.class())
		return
	}
	t := h.Thread
	of, c := t.retiredHeap, t.retiredClass
	if of != h || c != p.Class {
		h.kept.Remove(p.class()) // else p could go to the pool here, and to another thread
		if of == h && c == h.grown && h.keepCurrent(p.class()) {
			return
		}
		t.retiredHeap, t.retiredClass, t.retiredRun = h, p.Class, 0
		if of != nil && !of.keepCurrent(uintptr(c)) {
			of.dropCurrent(uintptr(c))
		}
	}
	if p.blocks == 1 && p.Class != h.grown && t.retiredRun < steadyRun {
		t.retiredRun++
		h.release(p, t.Now)
	}
}

const steadyRun = 3

// A thread whose buffers of up to some tens of KiB have several sizes in turn keeps the pages of
// all of them, as far as few bytes of these were ever put to use. A class more then takes the page
// of another that has as many slices. So the threads seldom wait for poolLock: 16 of them on 16
// Intel cores waited for it 50 times as long as the rest of a malloc and a free took.
//
//	Σ carved of the current pages of Heap.kept <= keepMost, when a class is added
//	retiredClass of retiredHeap is not in Heap.kept
//
// It gives them up before it takes a span of keptBreak slices or more, which would find less room
// between them.
const (
	keepMost  = 512 << 10
	keptBreak = 16
)

// keepCurrent keeps the empty current page of class c, and drops those of other classes for it. It
// reports false, and does nothing, if the page has blocks in use, if too much of it was put to use,
// by this class or another before (offerKept), or where no empty page is to stay.
func (h *Heap) keepCurrent(c uintptr) bool {
	p := h.current(c)
	most := min(keepMost, placements[p.placement&(placementSlots-1)].retireMax)
	sum := uintptr(p.carved)
	if p == pageNone || !p.allFree() || sum > most/2 || p.away() || secure || PurgeDelay == 0 ||
		uintptr(p.slices) > 2*h.slicesOf(c) {
		return false
	}
	for k := h.kept.Next(0); k < sizeclass.Count; k = h.kept.Next(k + 1) {
		n := uintptr(h.current(k).carved)
		if sum+n > most {
			h.kept.Remove(k)
			h.dropCurrent(k)
			continue
		}
		sum += n
	}
	h.kept.Add(c)
	return true
}

// takeKept makes the empty page of n slices of another class a span for class c, or returns nil:
// there is none, or a page more may stay. The span is like one of takeRetired.
func (h *Heap) takeKept(c, n uintptr) *Page {
	if secure || tiers.Migrating() {
		return nil
	}
	stay := h.kept
	if h.Thread.retiredHeap == h {
		stay.Add(uintptr(h.Thread.retiredClass))
	}
	sum, found := sizeclass.Size(c), uintptr(sizeclass.Count)
	for k := stay.Next(0); k < sizeclass.Count; k = stay.Next(k + 1) {
		p := h.current(k)
		sum += uintptr(p.carved)
		if uintptr(p.slices) == n && uintptr(p.carved) <= p.stride() && p.allFree() {
			found = k
		}
	}
	if sum <= keepMost || found == sizeclass.Count {
		return nil
	}
	return h.vacateKept(found)
}

// vacateKept is vacate for the empty current page of class k, which stays until now.
func (h *Heap) vacateKept(k uintptr) *Page {
	p := h.current(k)
	if !h.vacate(p) {
		return nil
	}
	h.kept.Remove(k)
	if t := h.Thread; t.retiredHeap == h && uintptr(t.retiredClass) == k {
		t.retiredHeap = nil
	}
	return p
}

// offerKept gives class c, which has no page, the empty page that stays, if it has n slices or
// more, and reports whether it did. A block that grows then moves there once, and has room for the
// rest without poolLock. Without other threads the lock costs less than to copy the block. Where
// the program keeps the block, the next offer ends that: one page of a heap is so long at a time.
func (h *Heap) offerKept(c, n uintptr) bool {
	t := h.Thread
	if pool.threadCount < 2 || h != t.Base || h != t.retiredHeap || h.current(c) != pageNone {
		return false
	}
	k := uintptr(t.retiredClass)
	p := h.current(k)
	if have := uintptr(p.slices); have < n || have > offerSlices || !p.allFree() {
		return false
	}
	h.settleOffered()
	if h.vacateKept(k) == nil {
		return false
	}
	h.addPage(p, c, uintptr(p.slices))
	h.offered = p
	return true
}

const offerSlices = inPlaceMost>>SliceShift + 1

// settleOffered gives the pool what the page that was offered last, and has blocks in use, does not
// need for them: the program keeps the block that grew there.
func (h *Heap) settleOffered() {
	p := h.offered
	h.offered = nil
	if p == nil || heapOf(p.Owner) != h || p.Magic == 0 || p.isNursery() || p.segment == nil ||
		p.subreleased != 0 || p.allFree() {
		return
	}
	stride := p.stride()
	n := max(h.slicesOf(p.class()), (p.lead()+uintptr(p.carved)+SliceSize-1)>>SliceShift)
	if stride == 0 || uintptr(p.slices) <= n || !poolLock.Take(h.Thread.token) {
		return
	}
	if p.moving == 0 && p.unmigrated == 0 {
		if rest := cut(p, n); rest != nil {
			p.blocks = min(p.blocks, uint32((n<<SliceShift-p.lead())/stride))
			spare(rest, h.Thread.Now)
		}
	}
	poolLock.Release()
}

// dropCurrent returns the current page of class c to the pool, at once or when it is empty.
func (h *Heap) dropCurrent(c uintptr) {
	p := h.current(c)
	if p != pageNone && !(p.allFree() && h.release(p, h.Thread.Now)) {
		p.arm()
	}
}

// dropKept is dropCurrent for all classes of Heap.kept.
func (h *Heap) dropKept() {
	for c := h.kept.Next(0); c < sizeclass.Count; c = h.kept.Next(c + 1) {
		h.kept.Remove(c)
		h.dropCurrent(c)
	}
}
