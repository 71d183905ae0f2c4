package config

import "tieralloc/internal/raw"

// asCap reads a number of bytes, as asSize does, or a part of a tier's memory, from 1% to 100%.
func (v value) asCap(bytes *uint64, part *uint32) bool {
	if v.n == 0 || v.at(v.n-1) != '%' {
		return v.asSize(bytes)
	}
	n := uint64(0)
	if v.n > 4 || !v.part(0, v.n-1).asDigits(&n) || n == 0 || n > 100 {
		return false
	}
	*part = uint32(n)
	return true
}

// asDigits reads up to three digits.
func (v value) asDigits(n *uint64) bool {
	for i := uintptr(0); i < v.n; i++ {
		if !isDigit(v.at(i)) {
			return false
		}
		*n = *n*10 + uint64(v.at(i)-'0')
	}
	return v.n != 0 && v.n <= 3
}

// SetParts converts caps in percent to bytes. memory is the memory of each tier, 0 if it is not
// known. It drops caps of tiers whose memory is not known, and a soft cap that turns out to be
// above the hard one. It writes a line for each dropped cap and returns their number.
func (s *Settings) SetParts(envp uintptr, memory *[4]uint64, fd uintptr) (bad uintptr) {
	for tier := uintptr(0); tier < uintptr(TierCount); tier++ {
		t, all, first := &s.Tiers[tier&3], memory[tier&3], varTiers+tier*tierVars
		if t.SoftPart|t.HardPart == 0 {
			continue
		}
		if all == 0 {
			complainUnknown(envp, first+tierSoft, t.SoftPart, fd)
			complainUnknown(envp, first+tierHard, t.HardPart, fd)
			bad += uintptr(min(t.SoftPart, 1) + min(t.HardPart, 1))
			continue
		}
		if t.SoftPart != 0 {
			t.Soft = max(all/100*uint64(t.SoftPart), 1)
		}
		if t.HardPart != 0 {
			t.Hard = max(all/100*uint64(t.HardPart), 1)
		}
		if t.Hard != 0 && t.Soft > t.Hard {
			t.Soft = 0
			complainPair(envp, first+tierSoft, "at most ", first+tierHard, noSoft, fd)
			bad++
		}
	}
	return bad
}

// complainUnknown writes the line for a cap of part percent of unknown memory. It writes nothing if
// part is 0.
//
//go:noinline
func complainUnknown(envp, i uintptr, part uint32, fd uintptr) {
	if part == 0 {
		return
	}
	var l raw.Line
	l.Text("tieralloc: ")
	l.Text(variables[i&tableMask].name)
	l.Text("=")
	show(&l, valueOf(envp, i), pairMax)
	l.Text(": expected bytes, as the tier's memory is not known; using ")
	l.Text(variables[i&tableMask].fallback)
	l.Emit(fd)
}
