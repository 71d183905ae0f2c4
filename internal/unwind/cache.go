package unwind

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// Most frames restore a few registers from fixed places, and the same call sites are met again and
// again. The rules of such a frame are kept by its program counter, so that the description need
// not be found and interpreted anew.

const (
	cacheBits = 10
	cacheRows = 1 << cacheBits
)

// keptRegisters are the registers that a function restores for its caller (System V ABI), by their
// DWARF numbers: rbx, rbp, r12 to r15.
var keptRegisters = [8]uint8{3, rbp, 12, 13, 14, 15}

const keptCount = 6

// cache is shared by all threads, and made by the first walk; nil without memory for it.
//
//	a row whose version is odd is being written
var cache *[cacheRows]cachedRow

// cachedRow is the rules of a frame whose return address is just below the CFA, or of an outermost
// one.
type cachedRow struct {
	_       raw.OffHeap
	version uint32

	pc      uintptr // 0: empty
	header  uintptr // of the object; it and unloads tell whether the code is still there
	unloads uintptr

	cfaOffset int32
	cfaReg    uint8            // rsp or rbp
	kept      uint8            // bit i: keptRegisters[i] is stored
	ends      bool             // there is no caller
	at        [keptCount]int16 // where, in words from the CFA
}

// makeCache makes the cache if there is none.
func makeCache() {
	const size = unsafe.Sizeof(*cache)
	if cache != nil {
		return
	}
	at := raw.Map(size)
	place := (*uintptr)(unsafe.Pointer(&cache))
	if at != 0 && !atomic.CompareAndSwapUintptr(place, 0, at) {
		raw.Unmap(at, size)
	}
}

// cacheSlot returns one of the two rows that pc may have.
func cacheSlot(pc, which uintptr) *cachedRow {
	return &cache[(pc*0x9e3779b97f4a7c15>>(64-cacheBits)^which)&(cacheRows-1)]
}

// cached copies the kept rules for pc to u.usual, and reports whether there are any.
func (u *Stack) cached(pc uintptr) bool {
	return cache != nil && (u.cachedIn(cacheSlot(pc, 0), pc) || u.cachedIn(cacheSlot(pc, 1), pc))
}

func (u *Stack) cachedIn(from *cachedRow, pc uintptr) bool {
	e := &u.usual
	version := atomic.LoadUint32(&from.version)
	if version&1 != 0 || from.pc != pc {
		return false
	}
	*e = *from
	return atomic.LoadUint32(&from.version) == version && e.pc == pc && e.header == u.Header &&
		e.unloads == u.Unloads
}

// store keeps the rules in u.usual for their program counter, unless another thread writes there.
func (u *Stack) store() {
	if cache == nil {
		return
	}
	e := cacheSlot(u.usual.pc, 0)
	if e.pc != 0 && e.unloads == u.Unloads {
		e = cacheSlot(u.usual.pc, 1)
	}
	version := atomic.LoadUint32(&e.version)
	if version&1 != 0 || !atomic.CompareAndSwapUint32(&e.version, version, version+1) {
		return
	}
	u.usual.version = version + 1
	*e = u.usual
	atomic.StoreUint32(&e.version, version+2)
}

// keep keeps the rules in u.row for pc, if they are of the usual kind.
func (u *Stack) keep(d *description, pc uintptr) {
	r, row := &u.row, &u.usual
	*row = cachedRow{pc: pc, header: u.Header, unloads: u.Unloads}
	if r.kind[rip] == ruleUndefined {
		row.ends = true
		u.store()
		return
	}
	if d.signal || r.cfaExpr.at != 0 || r.cfaReg != rsp && r.cfaReg != rbp ||
		r.kind[rip] != ruleOffset || r.value[rip] != ^uintptr(7) ||
		r.cfaOffset != uintptr(int32(r.cfaOffset)) {
		return
	}
	row.cfaOffset, row.cfaReg = int32(r.cfaOffset), uint8(r.cfaReg)
	usual := 1 // the return address
	for i := range keptCount {
		reg := keptRegisters[i&7] & (regs - 1)
		words := int64(r.value[reg]) / 8
		if r.kind[reg] != ruleOffset || int64(int16(words))*8 != int64(r.value[reg]) {
			continue
		}
		row.kept |= 1 << (i & 7)
		row.at[i] = int16(words)
		usual++
	}
	for i := range r.kind {
		if r.kind[i] != ruleSame {
			usual--
		}
	}
	if usual == 0 {
		u.store()
	}
}

// byCache goes to the caller by the kept rules in u.usual.
func (u *Stack) byCache() uintptr {
	e := &u.usual
	if e.ends {
		return Complete
	}
	cfa := u.Reg[e.cfaReg&(regs-1)] + uintptr(int64(e.cfaOffset))
	caller, ok := u.word(cfa - 8)
	if !ok || cfa <= u.Reg[rsp] {
		return Broken
	}
	for i := range keptCount {
		if e.kept>>(i&7)&1 == 0 {
			continue
		}
		v, ok := u.word(cfa + uintptr(int64(e.at[i])*8))
		if !ok {
			return Broken
		}
		u.Reg[keptRegisters[i&7]&(regs-1)] = v
	}
	u.Reg[rsp] = cfa
	return u.goTo(caller)
}
