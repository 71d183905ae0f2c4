package unwind

// Operations of DWARF expressions that call frame information uses (DW_OP_…): those of procedure
// linkage tables, of signal frames and of realigned stacks.
const (
	opDeref      = 0x06
	opConst1u    = 0x08
	opConst8s    = 0x0f
	opConstu     = 0x10
	opConsts     = 0x11
	opAnd        = 0x1a
	opMinus      = 0x1c
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opGe         = 0x2a
	opLit0       = 0x30
	opLit31      = 0x4f
	opBreg0      = 0x70
	opBreg31     = 0x8f
)

// operands is how many values an expression may stack.
const operands = 8

// evalStack is the values of an expression. A pop from an empty one, and a push on a full one, make
// the expression fail.
type evalStack struct {
	v  [operands]uintptr
	n  uintptr
	ok bool
}

func (s *evalStack) push(v uintptr) {
	if s.n >= operands {
		s.ok = false
		return
	}
	s.v[s.n&(operands-1)] = v
	s.n++
}

func (s *evalStack) pop() uintptr {
	if s.n == 0 {
		s.ok = false
		return 0
	}
	s.n--
	return s.v[s.n&(operands-1)]
}

// eval evaluates an expression over the registers of a frame. With pushed set it begins with cfa on
// the stack. It reports false for an expression that it does not understand.
func (u *Stack) eval(reg *[regs]uintptr, c cursor, cfa uintptr, pushed bool) (uintptr, bool) {
	s := evalStack{ok: true}
	if pushed {
		s.push(cfa)
	}
	for !c.over() && s.ok {
		op := c.fixed(1)
		switch {
		case op >= opLit0 && op <= opLit31:
			s.push(op - opLit0)
		case op >= opBreg0 && op <= opBreg31:
			s.push(reg[(op-opBreg0)&(regs-1)] + c.sleb())
		case op >= opConst1u && op <= opConst8s:
			s.push(c.constant(op - opConst1u))
		case op == opConstu:
			s.push(c.uleb())
		case op == opConsts:
			s.push(c.sleb())
		case op == opPlusUconst:
			s.push(s.pop() + c.uleb())
		case op == opDeref:
			v, ok := u.word(s.pop())
			s.ok = s.ok && ok
			s.push(v)
		default:
			s.combine(op)
		}
	}
	v := s.pop()
	return v, s.ok
}

// constant reads the operand of DW_OP_const1u and its like: 1, 2, 4 or 8 bytes, in turn unsigned
// and signed.
func (c *cursor) constant(which uintptr) uintptr {
	n := uintptr(1) << (which / 2 & 3)
	if which&1 != 0 {
		return c.signed(n)
	}
	return c.fixed(n)
}

// combine replaces the last two values.
func (s *evalStack) combine(op uintptr) {
	b, a := s.pop(), s.pop()
	switch op {
	case opAnd:
		s.push(a & b)
	case opMinus:
		s.push(a - b)
	case opPlus:
		s.push(a + b)
	case opShl:
		s.push(a << (b & 63))
	case opGe:
		v := uintptr(0)
		if int64(a) >= int64(b) {
			v = 1
		}
		s.push(v)
	default:
		s.ok = false
	}
}
