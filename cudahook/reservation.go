package cudahook

import (
	"math/bits"

	"tieralloc/internal/raw"
)

// A reservation is the range of addresses that a heap's expandable segments lie in. Memory is
// mapped into it in pieces, by cuMemCreate and cuMemMap. Segments that adjoin there are joined, so
// that blocks may cover several pieces, and a free piece may be returned to the driver while the
// blocks around it are in use. The idea is that of PyTorch's expandable segments.
//
//	bit i of starts set ⇔ a piece begins at base + i·mapUnit
//	an expandable segment begins and ends where pieces do
type reservation struct {
	raw.OffHeap
	base   uint64 // 0: none yet
	bytes  uint64
	starts uintptr // a bitmap
	asked  bool    // a request asks for it; others do without meanwhile
	none   bool    // the driver allows none
}

const (
	reservedTimes = 16        // the device's memory; addresses cost nothing
	pieceMax      = 512 << 20 // bytes; a larger piece would seldom be free as a whole
)

// contains reports whether an address lies in the reservation.
func (v *reservation) contains(address uint64) bool { return address-v.base < v.bytes }

func (v *reservation) word(unit uint64) uintptr { return v.starts + uintptr(unit/64*8) }

// mark notes the pieces of n bytes at an address.
func (v *reservation) mark(address, n uint64) {
	for at := address - v.base; n > 0; {
		w := v.word(at / mapUnit)
		raw.Store(w, raw.Load(w)|1<<(at/mapUnit&63))
		step := min(n, pieceMax)
		at += step
		n -= step
	}
}

// unmark forgets the pieces in n bytes at an address.
func (v *reservation) unmark(address, n uint64) {
	for at := address - v.base; n > 0; n -= mapUnit {
		w := v.word(at / mapUnit)
		raw.Store(w, raw.Load(w)&^(1<<(at/mapUnit&63)))
		at += mapUnit
	}
}

// first returns where the first piece begins in [from, to), or to.
func (v *reservation) first(from, to uint64) uint64 {
	unit, last := (from-v.base+mapUnit-1)/mapUnit, (to-v.base)/mapUnit
	for unit < last {
		w := uint64(raw.Load(v.word(unit))) >> (unit & 63)
		if w != 0 {
			return min(v.base+(unit+uint64(bits.TrailingZeros64(w)))*mapUnit, to)
		}
		unit = (unit | 63) + 1
	}
	return to
}

// last returns where the last piece begins in [from, to], or from.
func (v *reservation) last(from, to uint64) uint64 {
	unit, low := (to-v.base)/mapUnit, (from-v.base)/mapUnit
	for unit > low {
		w := uint64(raw.Load(v.word(unit))) << (63 - unit&63)
		if w != 0 {
			return max(v.base+(unit-uint64(bits.LeadingZeros64(w)))*mapUnit, from)
		}
		if unit < 64 {
			break
		}
		unit = (unit &^ 63) - 1
	}
	return from
}

// begin takes the driver's answer to ActReserve.
func (v *reservation) begin(r *Request) {
	if r.Result != Success || r.Value == 0 {
		v.none = true
		return
	}
	if v.starts == 0 {
		if v.starts = raw.Map(bitmapBytes(r.OnBytes)); v.starts == 0 {
			v.none = true
			return
		}
	}
	v.base, v.bytes = r.Value, r.OnBytes
}

func bitmapBytes(reserved uint64) uintptr {
	return raw.RoundUp(uintptr(reserved/mapUnit/8)+8, raw.Page)
}

// clear forgets the reservation, whose context has ended.
func (v *reservation) clear() {
	if v.starts != 0 {
		raw.Unmap(v.starts, bitmapBytes(v.bytes))
	}
	*v = reservation{}
}
