package unwind

// Most frames restore a few registers from fixed places, and the same call sites are met again and
// again. The rules of such a frame are kept by its program counter, so that the description need
// not be found and interpreted anew.

// cacheRows is a power of two.
const cacheRows = 1 << 10

// keptRegisters are the registers that a function restores for its caller (System V ABI), by their
// DWARF numbers: rbx, rbp, r12 to r15.
var keptRegisters = [8]uint8{3, rbp, 12, 13, 14, 15}

const keptCount = 6

// cachedRow is the rules of a frame whose return address is just below the CFA, or of an outermost
// one.
type cachedRow struct {
	pc      uintptr // 0: empty
	header  uintptr // of the object; it and unloads tell whether the code is still there
	unloads uintptr

	cfaOffset int32
	cfaReg    uint8            // rsp or rbp
	kept      uint8            // bit i: keptRegisters[i] is stored
	ends      bool             // there is no caller
	at        [keptCount]int16 // where, in words from the CFA
}

func (u *Stack) cacheSlot(pc uintptr) *cachedRow {
	return &u.cache[(pc^pc>>10)&(cacheRows-1)]
}

// cached returns the kept rules for pc, or nil.
func (u *Stack) cached(pc uintptr) *cachedRow {
	e := u.cacheSlot(pc)
	if e.pc != pc || e.header != u.Header || e.unloads != u.Unloads {
		return nil
	}
	return e
}

// keep keeps the rules in u.row for pc, if they are of the usual kind.
func (u *Stack) keep(d *description, pc uintptr) {
	r := &u.row
	if r.kind[rip] == ruleUndefined {
		*u.cacheSlot(pc) = cachedRow{pc: pc, header: u.Header, unloads: u.Unloads, ends: true}
		return
	}
	if d.signal || r.cfaExpr.at != 0 || r.cfaReg != rsp && r.cfaReg != rbp ||
		r.kind[rip] != ruleOffset || r.value[rip] != ^uintptr(7) ||
		r.cfaOffset != uintptr(int32(r.cfaOffset)) {
		return
	}
	row := cachedRow{pc: pc, header: u.Header, unloads: u.Unloads,
		cfaOffset: int32(r.cfaOffset), cfaReg: uint8(r.cfaReg)}
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
		*u.cacheSlot(pc) = row
	}
}

// byCache goes to the caller by kept rules.
func (u *Stack) byCache(e *cachedRow) uintptr {
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
