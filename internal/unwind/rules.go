package unwind

// How a register of the caller is found.
const (
	ruleSame = iota
	ruleUndefined
	ruleOffset    // stored at the CFA plus the value
	ruleValOffset // the CFA plus the value
	ruleRegister  // in the register that the value names
	ruleExpr      // stored where the expression at the value says
	ruleValExpr   // what the expression at the value says
)

// row is the rules at one program counter. The canonical frame address (CFA) is the stack pointer
// of the caller.
type row struct {
	cfaReg    uintptr
	cfaOffset uintptr
	cfaExpr   cursor // at is 0 without one
	value     [regs]uintptr
	kind      [regs]uint8
}

// savedRows is how deep DW_CFA_remember_state may nest. Compilers nest it once.
const savedRows = 4

// rules fills in u.row for pc. It reports false for instructions that it does not understand.
func (u *Stack) rules(d *description, pc uintptr) bool {
	u.row = row{}
	u.savedCount = 0
	if !u.execute(d, d.common, ^uintptr(0)) {
		return false
	}
	u.initial = u.row
	return u.execute(d, d.own, pc)
}

// set sets the rule of register r. Registers that are not kept, of vectors, are left out.
func (u *Stack) set(r uintptr, kind uint8, value uintptr) {
	if r < regs {
		u.row.kind[r], u.row.value[r] = kind, value
	}
}

func (u *Stack) restore(r uintptr) {
	if r < regs {
		u.row.kind[r], u.row.value[r] = u.initial.kind[r], u.initial.value[r]
	}
}

// Instructions with an operand in their lower six bits, and the others (DW_CFA_…).
const (
	highBits       = 0xc0
	advanceLoc     = 0x40
	offset         = 0x80
	restoreInitial = 0xc0

	nop              = 0x00
	setLoc           = 0x01
	advance1         = 0x02
	advance2         = 0x03
	advance4         = 0x04
	offsetExtended   = 0x05
	restoreExtended  = 0x06
	undefined        = 0x07
	sameValue        = 0x08
	register         = 0x09
	rememberState    = 0x0a
	restoreState     = 0x0b
	defCFA           = 0x0c
	defCFARegister   = 0x0d
	defCFAOffset     = 0x0e
	defCFAExpression = 0x0f
	expression       = 0x10
	offsetExtendedSF = 0x11
	defCFASF         = 0x12
	defCFAOffsetSF   = 0x13
	valOffset        = 0x14
	valOffsetSF      = 0x15
	valExpression    = 0x16
	argsSize         = 0x2e // DW_CFA_GNU_args_size
)

// execute carries out instructions up to the row that holds at pc.
func (u *Stack) execute(d *description, c cursor, pc uintptr) bool {
	loc := d.low
	for !c.over() {
		op := c.fixed(1)
		low := op &^ highBits
		switch op & highBits {
		case advanceLoc:
			loc += low * d.codeAlign
		case offset:
			u.set(low, ruleOffset, c.uleb()*d.dataAlign)
		case restoreInitial:
			u.restore(low)
		default:
			switch op {
			case setLoc:
				ok := false
				if loc, ok = c.pointer(d.enc, u.Header); !ok {
					return false
				}
			case advance1:
				loc += c.fixed(1) * d.codeAlign
			case advance2:
				loc += c.fixed(2) * d.codeAlign
			case advance4:
				loc += c.fixed(4) * d.codeAlign
			default:
				if !u.define(d, &c, op) {
					return false
				}
			}
		}
		if loc > pc {
			return true
		}
	}
	return true
}

// define carries out an instruction that changes a rule.
func (u *Stack) define(d *description, c *cursor, op uintptr) bool {
	switch op {
	case nop:
	case argsSize:
		c.uleb()
	case rememberState, restoreState:
		return u.remember(op == rememberState)
	case defCFA, defCFASF, defCFARegister, defCFAOffset, defCFAOffsetSF, defCFAExpression:
		u.defineCFA(d, c, op)
	default:
		return u.defineRegister(d, c, op)
	}
	return true
}

func (u *Stack) remember(save bool) bool {
	if save {
		if u.savedCount >= savedRows {
			return false
		}
		u.saved[u.savedCount&(savedRows-1)] = u.row
		u.savedCount++
		return true
	}
	if u.savedCount == 0 {
		return false
	}
	u.savedCount--
	u.row = u.saved[u.savedCount&(savedRows-1)]
	return true
}

// defineCFA carries out an instruction that changes how the CFA is computed.
func (u *Stack) defineCFA(d *description, c *cursor, op uintptr) {
	r := &u.row
	switch op {
	case defCFA:
		r.cfaReg, r.cfaOffset, r.cfaExpr.at = c.uleb(), c.uleb(), 0
	case defCFASF:
		r.cfaReg, r.cfaOffset, r.cfaExpr.at = c.uleb(), c.sleb()*d.dataAlign, 0
	case defCFARegister:
		r.cfaReg, r.cfaExpr.at = c.uleb(), 0
	case defCFAOffset:
		r.cfaOffset = c.uleb()
	case defCFAOffsetSF:
		r.cfaOffset = c.sleb() * d.dataAlign
	case defCFAExpression:
		r.cfaExpr = c.block()
	}
}

// defineRegister carries out an instruction that changes the rule of a register.
func (u *Stack) defineRegister(d *description, c *cursor, op uintptr) bool {
	r := c.uleb()
	switch op {
	case offsetExtended:
		u.set(r, ruleOffset, c.uleb()*d.dataAlign)
	case offsetExtendedSF:
		u.set(r, ruleOffset, c.sleb()*d.dataAlign)
	case valOffset:
		u.set(r, ruleValOffset, c.uleb()*d.dataAlign)
	case valOffsetSF:
		u.set(r, ruleValOffset, c.sleb()*d.dataAlign)
	case restoreExtended:
		u.restore(r)
	case undefined:
		u.set(r, ruleUndefined, 0)
	case sameValue:
		u.set(r, ruleSame, 0)
	case register:
		u.set(r, ruleRegister, c.uleb())
	case expression:
		u.set(r, ruleExpr, c.at)
		c.block()
	case valExpression:
		u.set(r, ruleValExpr, c.at)
		c.block()
	default:
		return false
	}
	return true
}

// block passes a length and that many bytes, and returns a cursor over them.
func (c *cursor) block() cursor {
	n := min(c.uleb(), c.end-c.at)
	b := cursor{at: c.at, end: c.at + n, low: c.low}
	c.at += n
	return b
}
