// Package pystack notes the Python stack of the calling thread, and keeps what it has met: frames
// (a function, a file and a line) and calls (a frame and the call that it was made from). A stack
// is the number of its innermost call, so stacks share their outer parts.
//
// The interpreter's lock is not needed. A thread that waits in a call of the library has a chain of
// frames that only itself could change, whether it holds that lock or has released it, and the
// frames keep their code objects alive. The layout of frames differs between the versions 3.11 to
// 3.14 that the package knows. A thread whose interpreter has ended has no such chain any more, and
// a build may have another layout. So the kernel is asked whether memory can be read before it is
// (readable), and an object counts only if its type says what it is.
package pystack

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// The sizes of a table, powers of two. A table that is full is emptied by Clear.
const (
	textMax  = 512 << 10
	depthMax = 128 // of a stack: calls further out are left out

	functionMax  = 1 << 13
	functionRows = 2 * functionMax
	placeMax     = 1 << 13

	stepMax     = 4 * depthMax // frames of a chain, those of the interpreter itself included
	scratchMax  = 256 << 10    // the longest table of lines
	noPage      = 1
	pageSlots   = 16   // a power of two
	stringMax   = 1024 // code points of a string
	stringBytes = 4 * stringMax
)

// A Table is in mapped memory, zero at first. Its user has a lock for it.
type Table struct {
	raw.OffHeap
	full  bool
	minor uintptr // of the interpreter's version, 3.minor
	head  uintptr // bytes that an object has before the words that all builds have

	pages [pageSlots]uintptr // of memory that can be read, found so in this walk

	codeType  uintptr // Python's types of code and of strings, once known
	textType  uintptr
	codeBytes uintptr // of a code object, up to its instructions

	functions uint32 // that there are
	texts     uint32 // bytes

	// entry has where the interpreter's functions, innermost first, keep a link of the chain among
	// their variables. entries is how many were noted last.
	entries uint32
	entry   [depthMax]uintptr

	frames  pairs // a function and a line
	calls   pairs // the call of the frame that a frame was called from, or 0, and the frame
	walk    [depthMax]uint32
	text    [textMax]byte
	scratch [scratchMax]byte

	functionAt [functionRows]uint32
	function   [functionMax]Function
	places     [placeMax]place // by hash: another may take the place of one
	file       Text            // of the latest function
}

// Size is the size of a Table.
const Size = unsafe.Sizeof(Table{})

// Clear forgets all frames and calls.
func (t *Table) Clear() {
	t.full = false
	t.functions, t.texts, t.file = 0, 0, Text{}
	t.frames.clear()
	t.calls.clear()
	for i := range t.functionAt {
		t.functionAt[i] = 0
	}
	for i := range t.places {
		t.places[i].frame = 0
	}
}

// Full reports whether the last stack was lost because the table is full.
func (t *Table) Full() bool { return t.full }

// Frames and Calls return how many there are.
func (t *Table) Frames() uint32 { return t.frames.n }

// Calls is the number of calls.
func (t *Table) Calls() uint32 { return t.calls.n }

// Frame returns the function and the line of a frame.
func (t *Table) Frame(n uint32) (function *Function, line uint32) {
	f := t.frames.get(n)
	return &t.function[(f.a-1)&(functionMax-1)], f.b
}

// Call returns the number of the call that the frame of a call was called from, 0 for none, and the
// number of the frame.
func (t *Table) Call(n uint32) (caller, frame uint32) {
	c := t.calls.get(n)
	return c.a, c.b
}

// Addr returns the address of a text.
func (t *Table) Addr(s Text) uintptr { return uintptr(unsafe.Pointer(&t.text)) + uintptr(s.at) }

// Byte returns the i-th byte of a text.
func (t *Table) Byte(s Text, i uint32) byte { return t.text[(s.at+i)&(textMax-1)] }

// FreeThreaded is added to the version of a build without the global lock. There the words of an
// object that count its references come after two others.
const FreeThreaded = 1 << 8

// Entries is how many functions of the interpreter the stack has that was noted last, at most
// depthMax.
func (t *Table) Entries() uint32 { return t.entries }

// Entry returns the address of a variable of the i-th of them, from the innermost on.
func (t *Table) Entry(i uint32) uintptr { return t.entry[i&(depthMax-1)] }

func (t *Table) enter(variable uintptr) {
	if t.entries < depthMax {
		t.entry[t.entries&(depthMax-1)] = variable
		t.entries++
	}
}

// Note returns the number of the innermost call of the calling thread, which has the thread state
// (PyThreadState) and the version 3.minor. It returns 0 if there is none.
func (t *Table) Note(thread, minor uintptr) uint32 {
	const ownedByC = 3 // in 3.12 the interpreter itself has frames with code
	t.minor, t.head, t.full, t.entries = minor, 0, false, 0
	if minor == 14|FreeThreaded {
		minor, t.minor, t.head = 14, 14, 16
	}
	if minor < 11 || minor > 14 {
		return 0
	}
	for i := range t.pages {
		t.pages[i] = noPage
	}
	var f frame
	var c code
	depth := uint32(0)
	previous := t.innermost(thread)
	for range stepMax {
		here := previous
		if depth == depthMax || !t.read(f.addr(), here, unsafe.Sizeof(f)) {
			break
		}
		at, instr := f[0]&^7, f[7] // from 3.14 on the lowest bits are marks
		previous = f[1]
		if minor == 11 {
			at, previous = f[4], f[6]
		}
		n := uint32(0)
		if (minor != 12 || f[8]>>48&0xff != ownedByC) && t.object(c.addr(), at, unsafe.Sizeof(c)) {
			n = t.frameOf(&c, here, at, instr)
		}
		switch {
		case n != 0:
			t.walk[depth&(depthMax-1)] = n
			depth++
		case minor != 11: // from 3.12 on that is a link
			t.enter(here)
		}
	}
	call := uint32(0)
	for depth > 0 && !t.full {
		depth--
		call = t.calls.number(call, t.walk[depth&(depthMax-1)])
		t.full = call == 0
	}
	if t.full {
		return 0
	}
	return call
}

// innermost returns the address of a thread's innermost frame, or 0.
func (t *Table) innermost(thread uintptr) (at uintptr) {
	const (
		cframe  = 56 // in a PyThreadState up to 3.12
		current = 72 // there, of the innermost frame, from 3.13 on
	)
	place := thread + current
	if t.minor <= 12 {
		if !t.read(uintptr(unsafe.Pointer(&place)), thread+cframe, unsafe.Sizeof(place)) {
			return 0
		}
		if t.minor == 11 {
			t.enterAll(place)
			place += 8 // of the innermost frame in a _PyCFrame
		}
	}
	if !t.read(uintptr(unsafe.Pointer(&at)), place, unsafe.Sizeof(at)) {
		return 0
	}
	return at
}

// enterAll notes the variables of 3.11, which are a chain of their own (_PyCFrame). The last one is
// the thread state's.
func (t *Table) enterAll(variable uintptr) {
	for range depthMax {
		here := variable
		if !t.read(uintptr(unsafe.Pointer(&variable)), here+16, unsafe.Sizeof(variable)) ||
			variable == 0 {
			return
		}
		t.enter(here)
	}
}

// read copies n bytes of the process, if they can be read.
func (t *Table) read(to, from, n uintptr) bool {
	if from+n < from || !t.readable(from, n) {
		return false
	}
	raw.Copy(to, from, n)
	return true
}

// object copies n bytes of an object, without what only builds without the global lock have.
func (t *Table) object(to, at, n uintptr) bool { return t.read(to, at+t.head, n) }

// readable reports whether the n bytes from an address on can be read. For each page that it has
// not met in this walk it asks the kernel, which reads the signal mask there before it refuses what
// it was told to do with it.
func (t *Table) readable(from, n uintptr) bool {
	const unknown = ^uintptr(0)
	for page := from &^ (raw.Page - 1); page < from+n; page += raw.Page {
		known := &t.pages[page/raw.Page&(pageSlots-1)]
		if *known == page {
			continue
		}
		at := max(page, from&^7)
		_, errno := raw.Sys(syscall.SYS_RT_SIGPROCMASK, unknown, at, 0, 8, 0, 0)
		if errno != uintptr(syscall.EINVAL) {
			return false
		}
		*known = page
	}
	return true
}

// is reports whether a type is the one of the name, which *known has once it was met. It returns
// the size of its objects without their parts where it is new.
func (t *Table) is(typ uintptr, known *uintptr, name uint64, n uintptr) (basic uintptr, ok bool) {
	if typ == *known && typ != 0 {
		return 0, true
	}
	var head [5]uintptr // a PyTypeObject: the last words are a pointer to its name, and that size
	got := uint64(0)
	if typ == 0 || !t.object(uintptr(unsafe.Pointer(&head)), typ, unsafe.Sizeof(head)) ||
		!t.read(uintptr(unsafe.Pointer(&got)), head[3], n) || got != name {
		return 0, false
	}
	*known = typ
	return head[4], true
}

// The names of types, with the zero at their ends.
const (
	codeName = 'c' | 'o'<<8 | 'd'<<16 | 'e'<<24
	textName = 's' | 't'<<8 | 'r'<<16
)

// frame is the first part of a _PyInterpreterFrame.
type frame [9]uintptr

func (f *frame) addr() uintptr { return uintptr(unsafe.Pointer(f)) }

// code is a PyCodeObject up to its table of lines. But for the count of references in its first
// word, and for a counter of 3.11, it does not change.
type code [18]uintptr

func (c *code) addr() uintptr     { return uintptr(unsafe.Pointer(c)) }
func (c *code) units() uintptr    { return c[2] } // of its instructions, 2 bytes each
func (c *code) file() uintptr     { return c[14] }
func (c *code) qualname() uintptr { return c[16] }
func (c *code) lines() uintptr    { return c[17] }

func (c *code) firstLine(minor uintptr) uint32 {
	if minor == 11 {
		return uint32(c[9])
	}
	return uint32(c[8] >> 32)
}

func (c *code) sum(minor uintptr) uint64 {
	const flags = 6 // in 3.11 with the counter behind them
	h := uint64(0)
	for i, w := range c[2:] {
		if minor == 11 && i+2 == flags {
			w &= 1<<32 - 1
		}
		h = mix(h ^ uint64(w))
	}
	return h
}

func mix(h uint64) uint64 {
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}
