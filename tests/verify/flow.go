package verify

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// site is a place where control leaves a function for another one.
type site struct {
	at     uint64 // the instruction
	target uint64
	depth  int64 // bytes on the stack there, the function's own return address not counted
	call   bool  // false: a jump, so the target returns in this function's stead
	text   string
}

// problem is something that a function must not contain.
type problem struct {
	at   uint64
	what string
}

// summary is what one function does, whoever calls it.
type summary struct {
	frame    int64 // the most bytes it pushes itself
	sites    []site
	problems []problem
}

// flow follows one function from its first instruction along every jump.
//
//	depth[i] is the stack depth before instruction i, or unknown. It is one
//	number per instruction: code whose depth depends on the way taken cannot
//	be bounded and is a problem.
type flow struct {
	img   *Image
	rules *Rules
	fn    *Func
	code  []Insn
	index map[uint64]int
	depth []int64
	work  []int
	out   summary
}

const unknown = -1 << 62

// analyse summarises fn.
func analyse(img *Image, rules *Rules, fn *Func) *summary {
	f := &flow{img: img, rules: rules, fn: fn, code: img.code(fn), index: map[uint64]int{}}
	f.depth = make([]int64, len(f.code))
	for i, in := range f.code {
		f.index[in.Addr] = i
		f.depth[i] = unknown
	}
	f.reach(fn.Addr, fn.Addr, 0)
	for len(f.work) > 0 {
		i := f.work[len(f.work)-1]
		f.work = f.work[:len(f.work)-1]
		f.step(i)
	}
	f.unreached()
	return &f.out
}

func (f *flow) bad(at uint64, format string, args ...any) {
	f.out.problems = append(f.out.problems, problem{at, fmt.Sprintf(format, args...)})
}

// reach notes that the instruction at addr, in this function, runs at depth d.
func (f *flow) reach(from, addr uint64, d int64) {
	i, ok := f.index[addr]
	switch {
	case !ok:
		f.bad(from, "goes to %#x, which is no instruction of the function", addr)
	case f.depth[i] == unknown:
		f.depth[i] = d
		f.out.frame = max(f.out.frame, d)
		f.work = append(f.work, i)
	case f.depth[i] != d:
		f.bad(addr, "stack depth differs between the ways that lead here (%d and %d bytes)",
			f.depth[i], d)
	}
}

// next is reach for the instruction after i.
func (f *flow) next(i int, d int64) {
	if i+1 < len(f.code) {
		f.reach(f.code[i].Addr, f.code[i+1].Addr, d)
		return
	}
	f.bad(f.code[i].Addr, "runs past the end of the function")
}

// step carries the depth over instruction i to whatever may run after it.
func (f *flow) step(i int) {
	in, d := f.code[i], f.depth[i]
	f.content(in)
	switch op := in.Op; {
	case op == "ret":
		if d != 0 || in.Args != "" {
			f.bad(in.Addr, "returns with %d bytes still on the stack", d)
		}
	case op == "ud2", op == "int3", op == "hlt":
	case op == "call":
		f.transfer(in, d, true)
		if !f.returns(in) {
			break
		}
		f.next(i, d)
	case op == "jmp" && strings.HasPrefix(in.Args, "*"):
		f.indirectJump(i)
	case op == "jmp":
		f.transfer(in, d, false)
	case op[0] == 'j', strings.HasPrefix(op, "loop"):
		f.transfer(in, d, false)
		f.next(i, d)
	default:
		delta, err := stackDelta(in)
		if err != nil {
			f.bad(in.Addr, "%v: the stack depth cannot be bounded", err)
		}
		f.next(i, d+delta)
	}
}

// transfer handles a call or a direct jump.
func (f *flow) transfer(in Insn, d int64, call bool) {
	if strings.HasPrefix(in.Args, "*") {
		if why := f.rules.Indirect[f.fn.Name]; why == "" {
			f.bad(in.Addr, "indirect call: %s", in.Text)
		}
		return
	}
	target, err := strconv.ParseUint(in.Args, 16, 64)
	if err != nil {
		f.bad(in.Addr, "cannot read the target of: %s", in.Text)
		return
	}
	inside := target >= f.fn.Addr && target < f.fn.Addr+f.fn.Size
	// A jump to the own start is a loop (every Go function has one behind
	// morestack); a call of it is recursion, which walk.go finds.
	if inside && !call {
		f.reach(in.Addr, target, d)
		return
	}
	f.out.sites = append(f.out.sites, site{in.Addr, target, d, call, in.Text})
}

// noReturn are the runtime's ways out. What follows a call of one is not run and
// may stand at any depth.
var noReturn = regexp.MustCompile(`^runtime\.((go)?[pP]anic|throw|fatal)`)

func (f *flow) returns(call Insn) bool {
	target, err := strconv.ParseUint(call.Args, 16, 64)
	if err != nil {
		return true
	}
	callee := f.img.funcAt(target)
	return callee == nil || !noReturn.MatchString(callee.Name)
}

// unreached adds the calls in code that no jump leads to. There is one kind: the
// block with runtime.deferreturn, which only a panic's recovery enters.
func (f *flow) unreached() {
	for i, in := range f.code {
		if f.depth[i] == unknown && in.Op == "call" {
			f.transfer(in, 0, true)
		}
	}
}

// indirectJump accepts a jump through a table of places in this function.
func (f *flow) indirectJump(i int) {
	in := f.code[i]
	targets, err := jumpTable(f.img, f.fn, f.code[:i+1])
	if err != nil {
		if f.rules.Indirect[f.fn.Name] == "" {
			f.bad(in.Addr, "indirect jump: %s: %v", in.Text, err)
		}
		return
	}
	for _, t := range targets {
		f.reach(in.Addr, t, f.depth[i])
	}
}

var (
	segment = regexp.MustCompile(`%[fg]s\b`)
	gUse    = regexp.MustCompile(`%r14[dwb]?\b`)
)

// content rejects what an instruction must not do wherever it stands.
func (f *flow) content(in Insn) {
	switch {
	case in.Op == "fs", in.Op == "gs", strings.HasSuffix(in.Op, "fsbase"),
		strings.HasSuffix(in.Op, "gsbase"),
		segment.MatchString(in.Args):
		// Here also the wrappers of ABI0 functions: they reload g from TLS.
		f.bad(in.Addr, "thread-local access: %s", in.Text)
	case in.Op == "syscall" && f.fn.Name != rawSyscall, in.Op == "sysenter", in.Op == "int":
		f.bad(in.Addr, "system call outside %s", rawSyscall)
	case in.Op == "(bad)", in.Op == ".byte":
		f.bad(in.Addr, "cannot be disassembled: %s", in.Text)
	case gUse.MatchString(strings.ReplaceAll(in.Args, stackguard0, "")):
		// R14 is g in all Go code. The counterfeit g is all zeros: stackguard0
		// is meant to be read, any other field is a nil that no real g has.
		f.bad(in.Addr, "uses g other than its stackguard0: %s", in.Text)
	}
}

// stackguard0 is g.stackguard0, behind the two words of g.stack.
const stackguard0 = "0x10(%r14)"

// stackDelta is by how much an instruction deepens the stack. It fails on a
// change of RSP whose amount the instruction does not show.
func stackDelta(in Insn) (int64, error) {
	switch {
	case strings.HasPrefix(in.Op, "push"):
		return 8, nil
	case in.Op == "pop" && in.Args == "%rsp", in.Op == "leave", in.Op == "enter":
		return 0, fmt.Errorf("sets RSP: %s", in.Text)
	case strings.HasPrefix(in.Op, "popcnt"):
	case strings.HasPrefix(in.Op, "pop"):
		return -8, nil
	case in.Op == "cmp", in.Op == "cmpq", in.Op == "test":
		return 0, nil
	}
	dst := in.Args[strings.LastIndex(in.Args, ",")+1:]
	if in.Op == "xchg" && strings.HasPrefix(in.Args, "%rsp,") {
		dst = "%rsp"
	}
	switch dst {
	case "%rsp", "%esp", "%sp", "%spl":
	default:
		return 0, nil
	}
	src := strings.TrimSuffix(in.Args, ","+dst)
	var n int64
	var err error
	switch in.Op {
	case "sub", "add":
		n, err = parseImm(strings.TrimPrefix(src, "$"))
	case "lea":
		n, err = parseImm(strings.TrimSuffix(src, "(%rsp)"))
	default:
		return 0, fmt.Errorf("sets RSP: %s", in.Text)
	}
	switch {
	case err != nil || dst != "%rsp":
		return 0, fmt.Errorf("sets RSP: %s", in.Text)
	case in.Op == "sub":
		return n, nil
	default:
		return -n, nil
	}
}

// parseImm reads 0x18, -0x18, or 0xffffffffffffff80 for -0x80.
func parseImm(s string) (int64, error) {
	if u, err := strconv.ParseUint(s, 0, 64); err == nil {
		return int64(u), nil
	}
	return strconv.ParseInt(s, 0, 64)
}
