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
// number of the tier. The answer may also be Refused, or Trim, perhaps with Last, and a tier in its
// lowest bits. trimmed has a bit for each tier that the caller has trimmed for this request.
// Reserve names each tier at most once, so four calls end a request.
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
	return r.overSoftCap(size)
}

// overSoftCap is Reserve when no tier takes the request within its caps.
func (r *request) overSoftCap(size uint64) (answer uintptr) {
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

// divided is a request for a block that may be laid over two tiers: its first part, whole steps,
// in the first tier that it does not fit, and the rest in a slower one.
type divided struct {
	request
	have  uint64 // bytes that the block already has in its home
	step  uint64 // a power of two
	stays bool   // soft caps do not send it to a slower tier
	sent  bool   // a soft cap has sent it to a slower tier
	first uintptr
	bytes uint64 // charged to the tier first; once cut is set, the rest goes to a slower tier
	cut   bool
}

// ReserveSplit is [Reserve] for a block that may be laid over two tiers, as the package's table
// says. With bytes != 0 so many of its first ones are charged to the tier first, and the rest to
// the one answered; else all n are. The answer may be Trim, or Refused: then nothing was charged
// or counted, and Reserve decides.
func ReserveSplit(hint, n, step, trimmed uintptr) (answer, first, bytes uintptr) {
	d := divided{step: uint64(step), stays: staysOver(hint)}
	d.home = Home(hint)
	answer = d.walk(uint64(n), trimmed)
	return answer, d.first, uintptr(d.bytes)
}

// staysOver reports whether requests for a hint stay in a tier over its soft cap. PIN_FAST never
// comes here.
func staysOver(hint uintptr) bool {
	return policy.onSoftcap != config.SoftcapReroute || uint32(hint) == config.HintHot
}

// ReserveGrowth charges n bytes more for a block that has have bytes in a tier, all it has. Where
// the tier does not take them, the first go there, as many as make whole steps of the block, and
// the rest to the slower tier answered. The answer may be Trim or Refused.
func ReserveGrowth(hint, tier, have, n, step, trimmed uintptr) (answer, bytes uintptr) {
	d := divided{have: uint64(have), step: uint64(step), stays: staysOver(hint)}
	d.home = tier
	if _, ok := charge(tier, uint64(n), d.limit(tier, true)); ok {
		return tier, n // an increase is not counted as a request
	}
	if answer = d.walk(uint64(n), trimmed); answer == Refused {
		d.full = 1 << (tier & slotMask) // the others are asked again, for a new block
		d.violate()
	}
	return answer, uintptr(d.bytes)
}

// walk charges n bytes within the soft caps, or else, where they are in the way, within the hard
// ones.
func (d *divided) walk(n uint64, trimmed uintptr) (answer uintptr) {
	if answer = d.within(n, trimmed, true); answer == Refused && !d.stays {
		answer = d.within(n, trimmed, false)
	}
	return answer
}

// limit returns the cap up to which tier i takes a request.
func (d *divided) limit(i uintptr, soft bool) uint64 {
	if soft && !d.stays {
		return min(memory(i).hard, memory(i).softNow())
	}
	return memory(i).hard
}

// within asks the tiers from the home to the slow one, until one takes the request or the rest of
// it after the first part.
func (d *divided) within(n uint64, trimmed uintptr, soft bool) (answer uintptr) {
	size, asked := n, uintptr(0) // asked has a bit for each account that did not take it
	for i := d.home; i < tierCount; i++ {
		bit, account := uintptr(1)<<(i&slotMask), uintptr(1)<<(of(i).account&slotMask)
		if asked&account != 0 {
			continue
		}
		limit := d.limit(i, soft)
		after, ok := charge(i, size, limit)
		if ok {
			d.full &^= bit // it may have been full for a larger request
			return d.take(i, after, size)
		}
		full := !fits(after, size, memory(i).hard)
		d.sent = d.sent || !full
		ends := !d.sent && policy.onHardcap == config.HardcapFail
		if trimmed&bit == 0 && (size <= limit || !d.cut && !ends) {
			d.undo()
			return trim(d.home, i, n, false)
		}
		d.close(bit, full)
		asked |= account
		if ends {
			break
		}
		if !d.cut {
			d.begin(i, size, limit)
			size -= d.bytes
		}
	}
	d.undo()
	return Refused
}

// close notes which cap of a tier refused the request last.
func (d *divided) close(bit uintptr, full bool) {
	if full {
		d.full |= bit
		d.over &^= bit
	} else {
		d.over |= bit
	}
}

// begin charges the first part of a request for size bytes to tier i: what is left of it up to the
// limit and, with demotion, up to the soft cap, above which it would go down again. A block that is
// there already has its first part there in any case.
func (d *divided) begin(i uintptr, size, limit uint64) {
	a := memory(i)
	if policy.onSoftcap >= config.SoftcapDemote { // or follow
		limit = min(limit, a.softNow())
	}
	limit = min(limit, a.hardNow())
	for {
		left := limit - min(limit, atomic.LoadUint64(&a.current))
		left = min(left, size-1) // otherwise all of it would fit by now
		end := (d.have + left) &^ (d.step - 1)
		left = end - min(end, d.have)
		d.cut = d.have != 0
		if left == 0 {
			return
		}
		after, ok := charge(i, left, limit)
		if ok {
			d.first, d.bytes, d.cut = i, left, true
		}
		if ok || after == ^uint64(0) { // or the group took the room meanwhile
			return
		}
	}
}

// undo releases the first part.
func (d *divided) undo() {
	if d.bytes != 0 {
		Release(d.first, uintptr(d.bytes))
	}
	d.first, d.bytes, d.cut = 0, 0, false
}
