package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// Before a thread heap asks the page heap for memory, it charges the bytes to a tier
// (placement.go). If the tier is full it makes room by means that the page heap does not have: the
// empty pages of its own thread and of others.

// reserve charges n bytes for the heap's hint and returns their placement. Before it fails or
// chooses a slower tier, it returns memory that is cached in the tier to the kernel. It does the
// same before the process's control group is full. Precondition: no lock is held.
func (h *Heap) reserve(n uintptr) (placement uintptr, ok bool) {
	if nearLimit(n) {
		h.Thread.heed(n)
	}
	placement, ok = h.reserveIn(n)
	h.Thread.capped = !ok
	return placement, ok
}

func (h *Heap) reserveIn(n uintptr) (placement uintptr, ok bool) {
	hint := uintptr(h.Hint)
	if hint < hintMoved {
		answer, _, _ := h.charge(n, false)
		return placementOf(hint, answer), answer != tiers.Refused
	}
	return homeOf(hint), h.Thread.admit(homeOf(hint), n, true)
}

// charge is tiers.Reserve, or with split tiers.ReserveSplit, for the heap's hint. It makes the room
// that these ask for.
func (h *Heap) charge(n uintptr, split bool) (answer, first, bytes uintptr) {
	hint, trimmed := uintptr(h.Hint), uintptr(0)
	for range placementSlots {
		if split {
			answer, first, bytes = tiers.ReserveSplit(hint, n, splitStep, trimmed)
		} else {
			answer = tiers.Reserve(hint, n, trimmed)
		}
		if answer&tiers.Trim == 0 {
			return answer, first, bytes
		}
		tier := answer & (placementSlots - 1)
		h.Thread.makeRoom(tier, n, answer&tiers.Last != 0)
		trimmed |= 1 << tier
	}
	return tiers.Refused, 0, 0
}

// reserveShape is reserve for memory whose size depends on the placement.
func (h *Heap) reserveShape(home uintptr, s *shape) (placement, n uintptr, ok bool) {
	n = s.bytes(home)
	if placement, ok = h.reserve(n); !ok {
		return 0, 0, false
	}
	fit, tier := s.bytes(placement), tierOf(uint32(placement))
	switch {
	case fit <= n:
		tiers.Release(tier, n-fit)
		return placement, fit, true
	case h.Thread.admit(tier, fit-n, false):
		return placement, fit, true
	}
	tiers.Release(tier, n)
	if !tiers.RoutesSlow() {
		return 0, 0, false
	}
	if placement, n, ok = h.Thread.admitFrom(home, s, false); !ok {
		placement, n, ok = h.Thread.admitFrom(home, s, true)
	}
	return placement, n, ok
}

// admitFrom charges the shape to the first tier from home on that admits it.
func (t *Thread) admitFrom(home uintptr, s *shape, last bool) (placement, n uintptr, ok bool) {
	for placement = home; placement < placementPin; placement++ {
		if n = s.bytes(placement); !renamed(placement, home) && t.admit(placement, n, last) {
			return placement, n, true
		}
	}
	return 0, 0, false
}

// admit charges n bytes to exactly this tier. If necessary it returns memory that is cached there
// to the kernel; with last, because the request fails if it is refused, all such memory.
// Precondition: no lock is held.
func (t *Thread) admit(tier, n uintptr, last bool) bool {
	if tiers.Full(tier, n) {
		t.makeRoom(tier, n, last)
	}
	return tiers.Admit(tier, n)
}

// heed checks the control group's limit before n more bytes are committed. Precondition: no lock is
// held.
func (t *Thread) heed(n uintptr) {
	if !atomic.CompareAndSwapUint32(&limit.busy, 0, 1) {
		return
	}
	if lookAtLimit(t.Now, n) {
		purgeAll(t)
	}
	atomic.StoreUint32(&limit.busy, 0)
}

// makeRoom returns memory that is cached in a tier to the kernel, including empty pages of this
// thread, of abandoned heaps, and of other threads if they can be taken. It examines a few of the
// other threads, so that the cost does not depend on their number. With last, when the request
// fails without room, it examines all threads and all tiers. At the hard cap it also waits for
// memory that other threads are returning. At the soft cap alone it searches for empty pages only
// once in a while.
func (t *Thread) makeRoom(tier, n uintptr, last bool) {
	full, pauses := tiers.Full(tier, n), pausesStep
	if full || t.Now > t.combed {
		t.combed = t.Now
		t.release()
		t.collectPages(true)
		serveAbandoned(t.token, t.Now, abandonedStep, false)
		t.stealPages(stealStep)
	}
	if full && last {
		pauses = pausesMost
		t.lookRound()
	}
	for placement := uintptr(0); placement < placementSlots; placement++ {
		if full && last || tiers.Same(tierOf(uint32(placement)), tier) {
			hugeExpire(t.token, t.Now, placement, true)
			purgePlacement(t.token, t.Now, placement, 0, purgeForRoom)
		}
	}
	for i := 0; full && i < pauses && pool.leaving != 0 && tiers.Full(tier, n); i++ {
		pause()
	}
}

// How often makeRoom pauses while other threads return memory.
const (
	pausesStep = 2
	pausesMost = 200
)

var pauseWord uint32 // nobody wakes its waiters

// pause lets other threads run for a moment. It waits for a futex, because sched_yield is a call
// that a filter of system calls may not know.
func pause() { raw.WaitFor(&pauseWord, 0, pauseTime) }

const pauseTime = 1000 // nanoseconds; the kernel adds its timer slack

// reserveHuge charges a huge block of size bytes, or more if the placement rounds up. If there is a
// first part, only the rest is in the placement.
func (h *Heap) reserveHuge(size uintptr, reserved bool) (n, placement uintptr, first firstPart,
	ok bool) {
	if !reserved {
		if n, placement, first, ok = h.reserveSplit(size); ok {
			return n, placement, first, ok
		}
	}
	s := shape{n: size, pool: reserved}
	placement, n, ok = h.reserveShape(placementOf(uintptr(h.Hint), homeOf(uintptr(h.Hint))), &s)
	return n, placement, firstPart{}, ok
}

// reserveSplit is reserveHuge if the policy allows a split block.
func (h *Heap) reserveSplit(size uintptr) (n, placement uintptr, first firstPart, ok bool) {
	hint := uintptr(h.Hint)
	alone := poolLock.Refuses(h.Thread.token) // the parts could not be recorded
	if alone || hint >= hintMoved || placementOf(hint, 0) == placementPin {
		return 0, 0, firstPart{}, false
	}
	granularity := max(hugePageSlices(0), hugePageSlices(1), hugePageSlices(2))
	n = raw.RoundUp(size, granularity<<SliceShift)
	if nearLimit(n) {
		h.Thread.heed(n)
	}
	answer, tier, bytes := h.charge(n, true)
	if answer == tiers.Refused {
		return 0, 0, firstPart{}, false
	}
	fit := raw.RoundUp(size, hugePageSlices(answer)<<SliceShift)
	if bytes != 0 {
		fit = n
	}
	tiers.Release(answer, n-fit)
	return fit, answer, firstPart{uint32(tier), bytes}, true
}

// reserveGrowth charges n more bytes for the block of p, which is pinned. Precondition: it is in
// one tier, or a whole split.
func (h *Heap) reserveGrowth(p *Page, n uintptr, g *growth) bool {
	*g = growth{tier: tierOf(p.placement), bytes: n}
	if p.done != 0 || p.parts() != nil || p.placement == placementPin || p.Hint >= hintMoved {
		return h.Thread.admit(g.tier, n, false)
	}
	trimmed := uintptr(0)
	for range placementSlots {
		answer, bytes := tiers.ReserveGrowth(uintptr(p.Hint), g.tier, p.Size, n, splitStep, trimmed)
		switch {
		case answer&tiers.Trim != 0:
			tier := answer & (placementSlots - 1)
			h.Thread.makeRoom(tier, n, false)
			trimmed |= 1 << tier
		case answer == tiers.Refused:
			return false
		case answer == g.tier:
			return true
		default:
			g.bytes, g.placement, g.rest = bytes, answer, n-bytes
			return true
		}
	}
	return false
}
