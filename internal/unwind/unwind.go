// Package unwind finds the callers of a function on the calling thread's stack. It is freestanding
// Go: it takes no lock, allocates nothing, and may run in a signal handler, in a forked child and
// while the dynamic loader holds its locks.
//
// It reads the call frame information of the objects (.eh_frame; DWARF 5, section 6.4, and the
// Linux Standard Base, "Exception Frames"), and follows frame pointers where there is none. C asks
// the loader which object a program counter belongs to (_dl_find_object takes no lock).
//
// A damaged or unusual stack ends the walk: the information is read within the bounds of its
// object, and the stack through the kernel (process_vm_readv) wherever its bounds are unknown.
package unwind

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// Frames is the largest number of callers of one walk.
const Frames = 256

// Numbers of registers in DWARF for amd64 (System V ABI, figure 3.36).
const (
	rbp  = 6
	rsp  = 7
	rip  = 16
	regs = 32 // more than are used, so that an index is masked
)

// Reasons why a walk has ended.
const (
	Going    = iota
	Complete // the outermost function was reached
	Broken   // a frame could not be unwound
	Deep     // there are more frames than fit
)

// Stack is a walk over the stack. C fills in the exported fields up to High before the first Step,
// and the object before each.
//
//	N <= Frames; windowLen <= sizeof(window)
type Stack struct {
	_ raw.OffHeap

	Reg   [regs]uintptr // the registers of the frame, by their DWARF numbers
	PC    uintptr       // where the frame continues
	Exact uintptr       // 1: the frame was interrupted at PC, which is no return address
	Low   uintptr       // words from Low to High can be read directly
	High  uintptr

	// Only for samples: the name of the thread, as the kernel has it, and its Python, as package
	// pystack takes it.
	Thread              [2]uint64
	Python, PythonMinor uintptr

	Unloads uintptr // how often an object may have been unloaded

	// The object that PC is in: its mapped addresses, its link map, and its .eh_frame_hdr, or 0.
	Start, End, Map, Header uintptr

	N     uintptr
	Frame [Frames]Frame

	windowAt  uintptr
	windowLen uintptr
	window    [128]uintptr

	row, initial row
	saved        [savedRows]row
	savedCount   uintptr
	usual        cachedRow
}

// Frame is one caller.
type Frame struct {
	PC    uintptr // in the call: a return address less 1
	Start uintptr // the object's first address, or 0
	Map   uintptr // its link map (struct link_map), valid during the walk
	SP    uintptr // the stack pointer at PC
}

// FrameOf returns the number of the frame that has addr among its variables, or N.
func (u *Stack) FrameOf(addr uintptr) uintptr {
	for i := range u.N {
		sp, end := u.Frame[i&(Frames-1)].SP, ^uintptr(0)
		if i+1 < u.N {
			end = u.Frame[(i+1)&(Frames-1)].SP
		}
		if sp <= addr && addr < end && addr-sp < maxFrame {
			return i
		}
	}
	return u.N
}

// Begin makes u ready for a walk.
func (u *Stack) Begin() {
	makeCache()
	u.N, u.windowLen, u.Exact = 0, 0, 0
}

// Skip tells Step that the frame belongs to the library itself and is not a caller.
const Skip = 1

// Step notes the frame that u is at, unless how is Skip, and goes on to its caller. It returns
// Going, or why the walk has ended.
func Step(u *Stack, how uintptr) uintptr {
	pc := u.PC - 1 + u.Exact
	if how != Skip {
		if u.N >= Frames {
			return Deep
		}
		u.Frame[u.N&(Frames-1)] = Frame{pc, u.Start, u.Map, u.Reg[rsp]}
		u.N++
	}
	if u.Header == 0 {
		if caller, ok := u.trampoline(); ok {
			return u.goTo(caller)
		}
		return u.byFramePointer()
	}
	if u.cached(pc) {
		return u.byCache()
	}
	var d description
	result := d.find(u, pc)
	if result == missing && u.Exact == 0 {
		// The address that the first function of a coroutine returns to begins a function:
		// nothing has called it.
		if pc++; d.find(u, pc) == found && d.low == pc {
			result = found
		}
	}
	switch result {
	case found:
		return u.byDescription(&d, pc)
	case missing:
		return u.byFramePointer()
	}
	return Broken
}

// byFramePointer goes to the caller by the frame pointer, which is 0 in the outermost frame (System
// V ABI, 3.4.1). Without a description of the frame the register may also hold anything else.
func (u *Stack) byFramePointer() uintptr {
	fp := u.Reg[rbp]
	if fp == 0 {
		return Complete
	}
	if fp < u.Reg[rsp] || fp-u.Reg[rsp] > maxFrame || fp&7 != 0 {
		return Broken
	}
	caller, ok := u.word(fp + 8)
	if !ok {
		return Broken
	}
	next, ok := u.word(fp)
	if !ok {
		return Broken
	}
	u.Reg[rsp], u.Reg[rbp] = fp+16, next
	return u.goTo(caller)
}

// trampoline goes to the caller if the frame is of code compiled at run time that only returns
// after its call: add $n, %rsp; ret. CPython's perf trampolines do so, one for each Python function
// (Python/asm_trampoline.S of 3.12 and 3.13), and have no frame pointer.
func (u *Stack) trampoline() (caller uintptr, ok bool) {
	var code uint64
	if u.Start != 0 || u.Exact != 0 ||
		copyFrom(u.PC, uintptr(unsafe.Pointer(&code)), 8) < 5 ||
		code&(1<<40-1)&^(0x7f<<24) != 0xc3_00_c4_83_48 {
		return 0, false
	}
	sp := u.Reg[rsp] + uintptr(code>>24&0x7f)
	caller, ok = u.word(sp)
	if ok {
		u.Reg[rsp] = sp + 8
	}
	return caller, ok
}

// maxFrame is the largest frame, in bytes, that frame pointers are believed to span.
const maxFrame = 1 << 20

func (u *Stack) goTo(pc uintptr) uintptr {
	u.PC, u.Exact = pc, 0
	if pc == 0 {
		return Complete
	}
	return Going
}

// byDescription goes to the caller by the frame's description.
func (u *Stack) byDescription(d *description, pc uintptr) uintptr {
	if !u.rules(d, pc) {
		return Broken
	}
	u.keep(d, pc)
	cfa := u.Reg[u.row.cfaReg&(regs-1)] + u.row.cfaOffset
	if u.row.cfaExpr.at != 0 {
		ok := false
		if cfa, ok = u.eval(&u.Reg, u.row.cfaExpr, 0, false); !ok {
			return Broken
		}
	}
	if u.row.kind[rip] == ruleUndefined {
		return Complete
	}
	if cfa <= u.Reg[rsp] && !d.signal { // only a signal's handler may run on another stack
		return Broken
	}
	before := u.Reg
	for r := range before {
		v, ok := u.restored(&before, uintptr(r), cfa)
		if !ok {
			return Broken
		}
		u.Reg[r] = v
	}
	next := u.Reg[rip]
	if u.row.kind[rsp] == ruleSame {
		u.Reg[rsp] = cfa
	}
	end := u.goTo(next)
	if d.signal {
		u.Exact = 1
	}
	return end
}

// restored returns the value of register r in the caller. before are the registers of the frame.
func (u *Stack) restored(before *[regs]uintptr, r, cfa uintptr) (v uintptr, ok bool) {
	r &= regs - 1
	value := u.row.value[r]
	switch u.row.kind[r] {
	case ruleOffset:
		return u.word(cfa + value)
	case ruleValOffset:
		return cfa + value, true
	case ruleRegister:
		return before[value&(regs-1)], true
	case ruleExpr, ruleValExpr:
		c := cursor{at: value, end: u.End, low: u.Start}
		n := c.uleb()
		c.end = min(c.end, c.at+n)
		v, ok = u.eval(before, c, cfa, true)
		if ok && u.row.kind[r] == ruleExpr {
			return u.word(v)
		}
		return v, ok
	}
	return before[r], true
}

// word reads the word at an address of the stack. It reports false if it cannot be read.
func (u *Stack) word(at uintptr) (v uintptr, ok bool) {
	const bytes = unsafe.Sizeof(at)
	if at%bytes != 0 {
		return 0, false
	}
	if at >= u.Low && at < u.High {
		return raw.Load(at), true
	}
	if at < u.windowAt || at-u.windowAt >= u.windowLen {
		u.windowAt, u.windowLen = at, u.read(at)
		if u.windowLen < bytes {
			return 0, false
		}
	}
	return u.window[(at-u.windowAt)/bytes&uintptr(len(u.window)-1)], true
}

// read fills the window with what lies at an address, and returns how many bytes could be read.
func (u *Stack) read(at uintptr) uintptr {
	n := copyFrom(at, uintptr(unsafe.Pointer(&u.window)), unsafe.Sizeof(u.window))
	return n &^ (unsafe.Sizeof(at) - 1)
}

// copyFrom copies up to n bytes from an address that need not be mapped, and returns how many it
// could.
func copyFrom(at, out, n uintptr) uintptr {
	to, from := [2]uintptr{out, n}, [2]uintptr{at, n}
	n, errno := raw.Sys(sysProcessVMReadv, raw.Pid(), uintptr(unsafe.Pointer(&to)), 1,
		uintptr(unsafe.Pointer(&from)), 1, 0)
	if errno != 0 {
		return 0
	}
	return n
}

// sysProcessVMReadv is the number of process_vm_readv, which package syscall has for other
// architectures only.
const sysProcessVMReadv = 310
