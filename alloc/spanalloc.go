package alloc

import (
	"sync/atomic"
	"syscall"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// spanAlloc takes a span of n slices for the heap from the pool, charged to a tier: a cached one,
// or a new one that is charged first. It returns nil if no tier has room or the kernel has no
// memory. Where it is fresh it may be up to most spans, linked by next. The caller sets the same
// fields as for spanCached.
func (h *Heap) spanAlloc(n, most uintptr) *Page {
	token := h.Thread.token
	home := placementOf(uintptr(h.Hint), homeOf(uintptr(h.Hint)))
	if poolLock.Refuses(token) {
		return h.emergencySpan(n)
	}
	if n >= keptBreak {
		h.dropKept()
	}
	p := spanCached(token, home, n, h.Hint)
	if p == nil && h.flushLarge() {
		p = spanCached(token, home, n, h.Hint)
	}
	if p == nil && h.Thread.trimHighWater(n<<SliceShift) {
		p = spanCached(token, home, n, h.Hint)
	}
	for again := true; p == nil && again; most = 1 { // where several cannot be had one may be
		again = most > 1
		s := shape{n: n * most << SliceShift, span: true}
		if placement, bytes, ok := h.reserveShape(home, &s); ok {
			p = spanReserved(token, placement, n, most, bytes, h.Hint, h.Thread.Now)
		}
	}
	if p != nil && p.placement == placementPin && bound && !pin(p.Start, p.bytes()) {
		spanReturn(token, p)
		return nil
	}
	return p
}

// A thread that has many pages takes several fresh ones at a time, next to each other, once there
// are other threads. Else their pages lie in turn, and as they fault them in the kernel has the
// threads wait for each other: it has a lock for the page table of each 2 MiB. (16 threads on 16
// Intel cores that fault in 8 MiB each take twice as long.) And they wait for poolLock less often.
//
// The pages stay untouched on the thread's list as retired ones, which serve any class (retire.go).
//
//	pages taken at once <= min(batchMost, 1 + Thread.pages/batchShare)
const (
	batchMost  = 8
	batchShare = 8
)

// batch is how many fresh pages of n slices the heap takes at once. Where addresses are limited,
// and of a tier with a small cap or near its cap, it takes no more than it needs.
func (h *Heap) batch(n uintptr) uintptr {
	k := min(batchMost, 1+h.Thread.pages/batchShare)
	if n != 1 || k == 1 || pool.threadCount < 2 || secure || addressLimit != 0 ||
		tiers.Migrating() {
		return 1
	}
	home := homeOf(uintptr(h.Hint)) & (placementSlots - 1)
	w := &placements[home]
	if home == placementPin || w.retireMax != retireMax || hugePageSlices(home) != 1 ||
		!tiers.Room(tierOf(uint32(home)), retireMax) {
		return 1
	}
	return min(k, 1+h.retireRoom(w, true)>>SliceShift)
}

// addRetired makes p, a span of one slice or nil, and those linked to it retired pages of class c.
func (h *Heap) addRetired(p *Page, c uintptr) {
	for p != nil {
		next := p.next
		h.addPage(p, c, 1)
		h.retire(p)
		p = next
	}
}

// When a class of small blocks takes one fresh page after another, several memory pages are faulted
// in by one system call: a call for four takes three quarters of the time of four faults. Blocks of
// a memory page or more are not prefaulted, because the program may leave them untouched.
const (
	prefaultBytes = 16 << 10 // at once
	// fresh pages without prefault, so that the prefaulted unused memory of a class is a small part
	// of it
	prefaultAfter = 4

	zeroPrefault = 2 // Page.zero: the part not yet carved reads as zero and is prefaulted
)

var prefaultRefused bool // an old kernel (EINVAL) or a filter of system calls has refused

// prefaults notes that class c takes a fresh page of blocks of size bytes, and reports whether the
// page is to be prefaulted.
func (h *Heap) prefaults(c, size uintptr) bool {
	n := h.freshPages(c)
	if *n < prefaultAfter {
		*n++
		return false
	}
	return size < raw.Page && !prefaultRefused && !pressed()
}

// fewAddresses is the limit of the address space, in bytes, up to which waste at the ends of pages
// matters.
const fewAddresses = 512 << 20

// wantsDense reports whether the next page of class c is to be a dense one, which wastes little at
// its end and may be larger: if addresses are few and the class already has several pages.
func (h *Heap) wantsDense(c uintptr) bool {
	few := addressLimit != 0 && addressLimit < fewAddresses
	return few && !secure && !watchedAlone(c) && *h.freshPages(c) == prefaultAfter
}

// prefault is called when the page is carved between the offsets at and end. If the kernel refuses,
// the memory is faulted in when it is touched, and so are huge pages.
func (p *Page) prefault(at, end uintptr) {
	start := p.spanStart()
	from := start
	if at != 0 {
		from = raw.RoundUp(p.Start+at, prefaultBytes)
	}
	if from >= p.Start+end || p.segment.hugeAt(from) {
		return
	}
	errno := raw.Populate(from, min(prefaultBytes, start+p.bytes()-from))
	if errno != 0 && errno != uintptr(syscall.ENOMEM) && errno != uintptr(syscall.EAGAIN) {
		prefaultRefused = true
	}
}

// Before a class above 1 KiB uses fresh memory, a free block of the next two classes serves the
// request. The classes of a thread do not peak at the same time, so together they hold much more
// free memory than the thread needs at once.
//
// Such a block costs a call of the slow path, and when it is freed it returns to its own class. So
// the rate of fallbacks is limited, and a class that is always short gets memory of its own. (The
// rate is a GCRA, as in package throttle.)
//
//	fallbackTime <= Now + fallbackBurst + fallbackEvery
//
// A page that may soon be empty does not serve, because a long-lived block would keep it.
const (
	fallbackReach = 2    // classes: blocks up to a quarter larger
	fallbackEvery = 5e3  // nanoseconds between two: a hundredth of the time
	fallbackBurst = 10e6 // nanoseconds' worth of fallbacks at once
)

// fallbackNear returns a free block of a slightly larger class than c whose size is a multiple of
// align, or 0.
func (h *Heap) fallbackNear(c, align uintptr) uintptr {
	t := h.Thread
	if c < warmFirst || secure || tiers.Migrating() || t.fallbackTime > t.Now+fallbackBurst {
		return 0
	}
	for k := c + 1; k <= c+fallbackReach && k < sizeclass.Count; k++ {
		current, cached := h.current(k), h.cacheList(k).Head
		p := current
		if cached != 0 {
			p = Lookup(cached)
		}
		if !h.aligns(k, align) || p == nil || !p.servesFallback(p == current) {
			continue
		}
		b := h.popCached(k)
		if b == 0 {
			b = p.pop()
		}
		if b != 0 {
			t.fallbackTime = max(t.fallbackTime, t.Now) + fallbackEvery
			return b
		}
	}
	return 0
}

// servesFallback reports whether a page may serve another class. It must be in the hint's tier.
// Unless it is current, and so stays anyway, most of it must be in use.
func (p *Page) servesFallback(current bool) bool {
	return !p.away() && (current || 4*(p.Allocs-p.Frees) >= 3*uint64(p.blocks))
}

// When there is no memory for another page of a class, free blocks of any larger class serve too: a
// request must not fail while the thread has free memory. glibc's tests fill the heap with small
// blocks until an allocation fails, and expect that nothing is left.

// fallbackAny returns the next class above c whose size is a multiple of align and of which h has a
// page on its list or a block on its thread-cache free list. It returns sizeclass.Count if there is
// none.
func (h *Heap) fallbackAny(c, align uintptr) uintptr {
	for c++; c < sizeclass.Count; c++ {
		if h.aligns(c, align) && (h.current(c) != pageNone || h.cacheList(c).Head != 0) {
			break
		}
	}
	return c
}

// fallbackUnspread is fallbackAny for a multiple of align from class c on, by the pages: not all of
// them are spread. It returns a block or 0.
func (h *Heap) fallbackUnspread(c, align uintptr) uintptr {
	for ; c < sizeclass.Count; c++ {
		p := h.current(c)
		if sizeclass.Size(c)&(align-1) != 0 || p == pageNone || p.isSpread() {
			continue
		}
		b := p.pop()
		if b == 0 {
			b = p.popUntouched()
		}
		if b != 0 {
			return b
		}
	}
	return 0
}

// aligns reports whether the blocks of class c lie at multiples of align, a power of two.
func (h *Heap) aligns(c, align uintptr) bool {
	return sizeclass.Size(c)&(align-1) == 0 &&
		(align <= sizeclass.Line || h.unspread || secure || !sizeclass.Spread(c))
}

// A signal handler may allocate while the code that it interrupted, on the same thread, holds a
// lock. POSIX does not allow that, but programs do it, above all in a child that the handler forks.
// Memory that would need the lock is then mapped separately and never joins the pool. Its addresses
// are not reused. It has no segment, and is on two lists that only grow, by compare-and-swap.
var alone struct {
	pages   uintptr // *Page, linked by nextAlone
	threads uintptr // *Thread, linked by all
}

func aloneThreads() *Thread { return (*Thread)(raw.Ptr(atomic.LoadUintptr(&alone.threads))) }

// emergencySpan maps a span of n slices whose descriptor is in a slice before it. It does not make
// room in a tier.
func (h *Heap) emergencySpan(n uintptr) *Page {
	size := (n + 1) << SliceShift
	placement, ok := h.reserveAlone(size)
	if !ok {
		return nil
	}
	start := mapAligned(size, SliceSize)
	if start != 0 && !mapReserve(start, size) {
		raw.Unmap(start, size)
		start = 0
	}
	if start == 0 {
		tiers.Release(tierOf(placement), size)
		return nil
	}
	placePages(start, size, placement, false)
	p := (*Page)(raw.Ptr(start))
	p.Start = start + SliceSize
	p.slices = uint32(n)
	p.state = spanInUse
	p.zero = 1
	p.placement = placement
	for {
		head := atomic.LoadUintptr(&alone.pages)
		p.setNextAlone((*Page)(raw.Ptr(head)))
		if atomic.CompareAndSwapUintptr(&alone.pages, head, start) {
			return p
		}
	}
}

// reserveAlone is reserve without the steps that take a lock.
func (h *Heap) reserveAlone(n uintptr) (placement uint32, ok bool) {
	const nothingToTrim = 1<<placementSlots - 1
	answer := tiers.Reserve(uintptr(h.Hint), n, nothingToTrim)
	return uint32(answer & (placementSlots - 1)), answer < placementSlots
}

// emergencyThread returns a thread with a heap that the pool does not know.
func emergencyThread(token uintptr) *Thread {
	addr := raw.Map(raw.RoundUp(threadBytes+heapBytes, raw.Page))
	if addr == 0 {
		return nil
	}
	t := (*Thread)(raw.Ptr(addr))
	t.begin(token, (*Heap)(raw.Ptr(addr+threadBytes)))
	for {
		head := atomic.LoadUintptr(&alone.threads)
		t.all = (*Thread)(raw.Ptr(head))
		if atomic.CompareAndSwapUintptr(&alone.threads, head, addr) {
			return t
		}
	}
}
