package profile

import (
	"sync/atomic"

	"tieralloc/internal/pystack"
	"tieralloc/internal/unwind"
	"tieralloc/stats"
)

// A stack with frames of Python is that of the program, in which these stand for the frames from
// the interpreter's innermost function to its outermost.

// pythonFrame is set in the number of a location that is a frame of t.python.
const pythonFrame = 1 << 31

// pythonID is added to the numbers of these frames for their locations in a profile.
const pythonID = locationCount

// notePython finds the Python stack of a block. Without room for it the block has the stack of the
// interpreter.
func (t *table) notePython(b *Block, stack *unwind.Stack) {
	b.call = 0
	if !hasPython(stack) {
		return
	}
	b.call = t.python.Note(stack.Python, stack.PythonMinor)
	if t.python.Full() {
		atomic.AddUint64(&Shortened, 1)
	}
}

func hasPython(stack *unwind.Stack) bool { return stack.Python != 0 }

// lay puts the locations of a stack behind those of all sites, unwind.Frames at most, and returns
// how many there are. Those outermost are left out. call is the innermost call of Python, or 0.
func (t *table) lay(stack *unwind.Stack, call uint32) uintptr {
	n, outer := uintptr(0), uintptr(0)
	if call != 0 {
		inner := uintptr(0)
		if inner, outer = t.evalFrames(stack); inner == outer {
			call = 0
		}
		for ; n < inner; n++ {
			t.setFrame(n, t.locate(stack, n))
		}
	}
	for ; call != 0 && n < unwind.Frames; n++ {
		caller, frame := t.python.Call(call)
		t.setFrame(n, frame|pythonFrame)
		call = caller
	}
	for i := outer; i < stack.N && n < unwind.Frames; i++ {
		t.setFrame(n, t.locate(stack, i))
		n++
	}
	return n
}

func (t *table) setFrame(i uintptr, location uint32) {
	t.frames[(t.frameN+i)&(stackWords-1)] = location
}

// evalFrames returns the innermost frame of the interpreter and the first that lies further out
// than all of them and their trampolines, which are in no object. Both are 0 without any. These are
// the frames whose variables were noted last: the compiler may have moved most of the interpreter's
// function elsewhere, so its address tells nothing.
func (t *table) evalFrames(stack *unwind.Stack) (inner, outer uintptr) {
	inner = stack.N
	for k := range t.python.Entries() {
		if i := stack.FrameOf(t.python.Entry(k)); i < stack.N {
			inner, outer = min(inner, i), max(outer, i+1)
		}
	}
	if outer == 0 {
		return 0, 0
	}
	for outer < stack.N && stack.Frame[outer&(unwind.Frames-1)].Start == 0 {
		outer++
	}
	return inner, outer
}

// python writes the functions and locations of Python that sites have. It numbers the functions
// without gaps, because to those that pprof adds it gives numbers from their count on.
func (e *encoder) python() {
	u := &t.written
	*u = frameSet{}
	for i := uintptr(0); i < t.frameN; i++ {
		if l := t.frames[i&(stackWords-1)]; l&pythonFrame != 0 {
			u.add(l)
			function, _ := t.python.Frame(l &^ pythonFrame)
			function.Number = 0
		}
	}
	file, name, functions := uint64(0), pystack.Text{}, uint32(0)
	for n := uint32(1); n <= t.python.Frames(); n++ {
		if !u.has(n) {
			continue
		}
		function, number := t.python.Frame(n)
		if function.Number == 0 {
			if file == 0 || function.File != name {
				file, name = e.addText(function.File), function.File
			}
			word := e.addText(function.Name)
			at := e.open(fieldFunction)
			functions++
			function.Number = functions
			e.number(1, uint64(functions))
			e.number(2, word)
			e.number(3, word)
			e.number(4, file)
			e.close(at)
		}
		at := e.open(fieldLocation)
		e.number(1, uint64(n+pythonID))
		line := e.open(4)
		e.number(1, uint64(function.Number))
		e.number(2, uint64(number))
		e.close(line)
		e.close(at)
	}
}

// frameSet has a bit for each frame of Python.
type frameSet [pystack.PairMax / 64]uint64

func (u *frameSet) add(n uint32) { u[n/64&(pystack.PairMax/64-1)] |= 1 << (n & 63) }

func (u *frameSet) has(n uint32) bool { return u[n/64&(pystack.PairMax/64-1)]>>(n&63)&1 != 0 }

// addText adds a text of Python's to the string table.
func (e *encoder) addText(s pystack.Text) uint64 {
	return e.addBytes(t.python.Addr(s), uintptr(s.N))
}

// putPython describes frame n of Python for a report.
func (t *table) putPython(out *stats.Frame, n uint32) {
	f, line := t.python.Frame(n)
	out.Function, out.FunctionLen = t.python.Addr(f.Name), uintptr(f.Name.N)
	out.Name, out.NameLen = t.python.Addr(f.File), uintptr(f.File.N)
	out.Address = uint64(line)
}
