package tiers

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/stats"
)

// Home returns the tier that memory for a hint belongs to.
func Home(hint uintptr) uintptr {
	switch uint32(hint) {
	case config.HintHot, config.HintPinFast, config.HintPreferFast:
		return uintptr(config.TierFast)
	case config.HintCold:
		return uintptr(config.TierSlow)
	}
	return uintptr(config.TierNormal)
}

// request is the state of Reserve: a bit for each tier that the hard cap closed, and for each that
// only the soft cap closed. A tier whose account has refused a faster tier has neither bit: it is
// skipped.
type request struct {
	home       uintptr
	full, over uintptr
	asked      uintptr // a bit for each account
}

// Reserve charges n bytes for a hint to a tier, as the table of the package says, and returns the
// number of the tier. The answer may also be Refused, or Trim (perhaps with Last) with a tier in its lowest bits.
// trimmed has a bit for each tier that the caller has trimmed for this request. Reserve names each
// tier at most once, so four calls end a request.
func Reserve(hint, n, trimmed uintptr) (answer uintptr) {
	size := uint64(n)
	pinned := uint32(hint) == config.HintPinFast
	stays := policy.onSoftcap != config.SoftcapReroute || pinned || uint32(hint) == config.HintHot
	r := request{home: Home(hint)}
	for i := r.home; i < tierCount; i++ {
		a := memory(i)
		if r.asked>>(of(i).account&slotMask)&1 != 0 {
			continue
		}
		bit := uintptr(1) << (i & slotMask)
		limit := a.hard
		if !stays {
			limit = min(limit, a.softNow())
		}
		after, ok := charge(i, size, limit)
		if ok {
			return r.take(i, after, size)
		}
		closing := &r.over // after is what was there
		if !fits(after, size, a.hard) {
			closing, limit = &r.full, a.hard
		}
		if trimmed&bit == 0 && size <= limit {
			return trim(r.home, i, size, pinned)
		}
		*closing |= bit
		r.asked |= 1 << (of(i).account & slotMask)
		if r.over == 0 && (pinned || policy.onHardcap == config.HardcapFail) {
			return r.refuse()
		}
	}
	return r.settle(size)
}

// settle is Reserve when no tier takes the request within its caps.
func (r *request) settle(size uint64) (answer uintptr) {
	for i := r.home; i < tierCount && r.over != 0; i++ {
		bit := uintptr(1) << (i & slotMask)
		if (r.full|r.over)&bit == 0 {
			continue
		}
		after, ok := charge(i, size, memory(i).hard)
		if ok {
			return r.take(i, after, size)
		}
		// the account may be full by now
		r.full |= bit
		r.over &^= bit
	}
	return r.refuse()
}

// take counts that tier i took the request and its account holds after bytes now.
func (r *request) take(i uintptr, after, size uint64) uintptr {
	if soft := memory(i).softNow(); after > soft {
		atomic.AddUint64(&at(i).softExceeded, 1)
		if after-size <= soft { // this request exceeded it
			stats.Put1(config.LogWarn, stats.EventSoftcap, i, uintptr(after))
		}
	}
	if r.full|r.over == 0 {
		return i
	}
	r.violate()
	for k := r.home; k < i; k++ {
		switch {
		case r.full>>(k&slotMask)&1 != 0:
			atomic.AddUint64(&at(k).routedSlow, 1)
		case r.over>>(k&slotMask)&1 != 0:
			atomic.AddUint64(&at(k).rerouted, 1)
		}
	}
	return i
}

// refuse counts a request that no tier took.
func (r *request) refuse() uintptr {
	r.violate()
	atomic.AddUint64(&at(r.home).refused, 1)
	return Refused
}

// violate counts the hard caps that refused the request.
func (r *request) violate() {
	for k := uintptr(0); k < tierCount; k++ {
		if r.full>>(k&slotMask)&1 != 0 {
			atomic.AddUint64(&at(k).violations, 1)
			stats.Put1(config.LogWarn, stats.EventHardcap, k,
				uintptr(atomic.LoadUint64(&memory(k).current)))
		}
	}
}

// trim returns the answer that asks for room in a tier for n bytes.
func trim(home, tier uintptr, n uint64, pinned bool) (answer uintptr) {
	asked := uintptr(0)
	for i := home; i <= tier && i < tierCount; i++ {
		if !Full(i, uintptr(n)) {
			return Trim | tier
		}
		asked |= 1 << (of(i).account & slotMask)
	}
	for i := tier + 1; i < tierCount && !pinned && RoutesSlow(); i++ {
		if asked>>(of(i).account&slotMask)&1 == 0 && n <= memory(i).hard {
			return Trim | tier
		}
	}
	return Trim | Last | tier
}

// RoutesSlow reports whether memory goes to a slower tier when a tier is at its hard cap.
func RoutesSlow() bool { return policy.onHardcap == config.HardcapRouteSlow }

// Unpinned counts that memory charged for PIN_FAST could not be made resident on the
// fast nodes, and so was refused.
func Unpinned() { atomic.AddUint64(&at(Home(uintptr(config.HintPinFast))).refused, 1) }
