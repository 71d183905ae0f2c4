package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/tiers"
)

// A page that became empty stays on its list for a while. So a program that uses its classes
// alternately gets memory from its thread's own pages. That avoids cache misses on the pool's lock
// and lists, and on pages that another thread had last. A retired page of one slice serves any
// class of its heap, most recently retired first.
//
// A thread that stops allocating keeps its retired pages. So these limits hold when a page is
// retired, where used is the bytes of all spans in use, retired ones included:
//
//	Thread.retiredBytes <= max(used/retireShareUsed, min(retireOne, used/2)), retireMax,
//		retireMax of the page's placement
//	pool.retiredBytes = Σ Thread.retiredBytes
//	pool.retiredBytes <= max(retireAll, used/retireShareAll)
//		where Thread.retiredBytes > used/retireShareUsed
const (
	retireOne       = 512 << 10 // of pages of one slice, which serve any class
	retireShareUsed = 64
	retireAll       = 4 << 20
	retireShareAll  = 8

	// a power of two; pages retired before these stay for their class, or until they are old
	retiredKnown = 8
)

// retire keeps an empty page, which is not current, on its list if the limits allow it. It reports
// whether the page stays.
func (h *Heap) retire(p *Page) bool {
	if p.bytes() > h.retireRoom(&placements[p.placement&(placementSlots-1)], p.slices == 1) {
		return false
	}
	h.Thread.retiredBytes += p.bytes()
	atomic.AddUintptr(&pool.retiredBytes, p.bytes())
	p.markRetired()
	p.setFreeSince(h.Thread.Now)
	if p.slices == 1 {
		h.retiredPages[h.retiredAt&(retiredKnown-1)] = p
		h.retiredAt++
	}
	return true
}

// retireRoom is how many bytes more of a placement, in pages of one slice or longer ones, the
// thread may retire.
func (h *Heap) retireRoom(w *placement, oneSlice bool) uintptr {
	used := pool.usedBytes // read without the lock
	most := used / retireShareUsed
	if oneSlice && !secure && PurgeDelay != 0 {
		all := max(retireAll, used/retireShareAll)
		others := atomic.LoadUintptr(&pool.retiredBytes) - h.Thread.retiredBytes
		most = max(most, min(retireOne, used/2, all-min(all, others)))
	}
	most = min(most, w.retireMax)
	return most - min(most, h.Thread.retiredBytes)
}

// unretire ends the retirement of a page.
func (h *Heap) unretire(p *Page) {
	if p.isRetired() {
		h.Thread.retiredBytes -= p.bytes()
		atomic.AddUintptr(&pool.retiredBytes, -p.bytes())
	}
}

// takeRetired removes a retired page of n slices from its list, to make it a page of any class, or
// returns nil. The page is like one of the pool's spans, fresh if it was never used, except that it
// is in the page map. If spans are demoted by age it returns nil, because a span from the pool is
// the youngest.
func (h *Heap) takeRetired(n uintptr) *Page {
	if n != 1 || secure || tiers.Migrating() {
		return nil
	}
	for range retiredKnown {
		h.retiredAt--
		p := h.retiredPages[h.retiredAt&(retiredKnown-1)]
		h.retiredPages[h.retiredAt&(retiredKnown-1)] = nil
		if p == nil {
			break
		}
		// The page may have returned to the pool meanwhile and be in any state. But only this
		// thread puts pages on the heap's list and removes them.
		owner := atomic.LoadUintptr(&p.Owner)
		if heapOf(owner) == h && owner&OwnerFull == 0 && p.isRetired() && p.slices == 1 &&
			h.vacate(p) {
			return p
		}
	}
	return nil
}

// vacate makes an empty page of the heap a span that is in no list, for takeRetired and vacateKept,
// or reports false.
func (h *Heap) vacate(p *Page) bool {
	if p.unmigrated != 0 || p.away() || !h.detach(p) {
		return false
	}
	atomic.StoreUintptr(&p.Owner, ownerNone)
	p.next = nil
	if p.carved != 0 {
		p.zero = 0
	}
	p.zero = min(p.zero, 1)
	return true
}

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

// Page rotation: when the current page of a class has no free block, it goes to the end of the
// list, and the next page becomes current.

// rotateFreed rotates the current page, which has no free block, if blocks of it were freed since
// it became current, and reports whether it did. Such a page is not taken off the list: its next
// frees would then go to the thread-cache free list, and alternating between the two lists would
// cost mispredicted branches.
func (h *Heap) rotateFreed(p *Page) bool {
	if p.next == nil || !p.freedSinceRotation() {
		return false
	}
	h.rotate(p)
	return true
}

// rotateLeast is the least number of free bytes for which a rotation is worth while.
const rotateLeast = 1 << 10

// rotateToFreed rotates the current page, which has no free block but may be carved further, if the
// next page has free blocks, and reports whether it did: memory that was in use is preferred to
// fresh memory. (For a page of slots this is not known.)
func (h *Heap) rotateToFreed(p *Page) bool {
	q := p.next
	if q == nil || p.Magic == 0 || q.freeBytes() < rotateLeast ||
		q.Free == 0 && q.subreleased == 0 {
		// only the list counts: a program that writes to free blocks may have cut it short
		return false
	}
	h.rotate(p)
	return true
}

// rotate puts the current page at the end of its list. Precondition: the list has other pages.
func (h *Heap) rotate(p *Page) {
	p.noteRotation()
	h.unlink(p)
	h.append(p)
}

// freeBytes returns the bytes of free blocks in the page, including those in subreleased parts. It
// excludes blocks that other threads have freed: they are still in other processors' caches, and
// taking many back at once is cheaper. Precondition: the caller owns the page, which is not of
// slots.
func (p *Page) freeBytes() uintptr {
	return uintptr(p.carved) - p.Size*uintptr(p.Allocs-p.Frees)
}
