package pystack

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// words are what an interpreter has in memory.
type words []uintptr

func (w words) at() uintptr { return uintptr(unsafe.Pointer(&w[0])) }

// set puts bytes from the i-th word on.
func (w words) set(i uintptr, bytes string) {
	for j := range len(bytes) {
		*(*byte)(unsafe.Add(unsafe.Pointer(&w[i]), j)) = bytes[j]
	}
}

// An interpreter lays out objects, with a head of so many words before those that all builds have.
type interpreter struct {
	head uintptr
	text words // its type of strings
	all  []words
}

func (p *interpreter) object(n uintptr, typ words) words {
	w := make(words, p.head+n)
	if typ != nil {
		w[p.head+1] = typ.at()
	}
	p.all = append(p.all, w)
	return w
}

func (p *interpreter) typeOf(name string, basic uintptr) words {
	w, text := p.object(5, nil), p.object(2, nil)
	text.set(0, name)
	w[p.head+3], w[p.head+4] = text.at(), basic
	return w
}

// textOf is a string of ASCII, which has so many bits before its kind.
func (p *interpreter) textOf(s string, before uintptr) words {
	w := p.object(9, p.text)
	w[p.head+2] = uintptr(len(s))
	w[p.head+4] = (1 | 1<<3 | 1<<4) << before
	w.set(p.head+5, s)
	return w
}

// TestLayouts: the function and the line of a frame are read in the layouts of the builds.
func TestLayouts(t *testing.T) {
	const (
		units = 8
		first = 100 // line of the function; each of its instructions has a line of its own
	)
	for _, build := range []struct {
		name                  string
		minor, head, tag, own uintptr
		before                uintptr // bits of a string's state before its kind
	}{
		{"3.13", 13, 0, 0, 0, 2},
		{"3.14", 14, 0, 1, 0, 2},
		{"3.14, wide bits", 14, 0, 1, 0, 16},
		{"3.14t", 14 | FreeThreaded, 2, 1, 0, 8},
		{"3.14t, wide bits", 14 | FreeThreaded, 2, 1, 0, 16},
		{"3.14t, a thread's own instructions", 14 | FreeThreaded, 2, 1, 2, 8},
	} {
		p := &interpreter{head: build.head}
		p.text = p.typeOf("str", 0)
		basic := 8 * (p.head + 20)
		lines := p.object(6, nil)
		lines[p.head+2] = 2 * units
		lines.set(p.head+4, strings.Repeat(string([]byte{0x80 | 11<<3, 0}), units))
		code := p.object(20+2, p.typeOf("code", basic))
		code[p.head+2] = units
		code[p.head+8] = first << 32
		code[p.head+14] = p.textOf("store.py", build.before).at()
		code[p.head+16] = p.textOf("Store.load", build.before).at()
		code[p.head+17] = lines.at()
		start := code.at() + basic
		if p.head != 0 {
			copies := words{build.own + 1, start, 0, 0}
			if build.own != 0 {
				start = p.object(2, nil).at()
				copies[1+build.own] = start
			}
			code[p.head+19] = copies.at()
			p.all = append(p.all, copies)
		}
		frame, link, thread := p.object(10, nil), p.object(10, nil), p.object(10, nil)
		frame[0], frame[1], frame[7] = code.at()|build.tag, link.at(), start+2*3
		frame[9] = build.own
		link[0] = p.textOf("no code", build.before).at() | build.tag
		thread[9] = frame.at()

		table := newTable()
		n := table.Note(thread.at(), build.minor)
		if n == 0 {
			t.Errorf("%s: no stack", build.name)
			continue
		}
		_, at := table.Call(n)
		f, line := table.Frame(at)
		got := string(table.text[f.Name.at:f.Name.at+f.Name.N]) + " of " +
			string(table.text[f.File.at:f.File.at+f.File.N])
		if got != "Store.load of store.py" || line != first+4 {
			t.Errorf("%s: %s, line %d", build.name, got, line)
		}
		if table.Entries() != 1 || table.Entry(0) != link.at() {
			t.Errorf("%s: %d links, the first at %#x, not %#x", build.name, table.Entries(),
				table.Entry(0), link.at())
		}
		if n := table.Note(thread.at(), build.minor^FreeThreaded); n != 0 {
			t.Errorf("%s: a stack in another layout", build.name)
		}
		runtime.KeepAlive(p)
	}
}

// TestEntries311: in 3.11 the interpreter's functions have a chain of their own, which ends in the
// thread state.
func TestEntries311(t *testing.T) {
	thread := make(words, 10)
	inner, outer, last := make(words, 3), make(words, 3), make(words, 3)
	thread[7] = inner.at()
	inner[2], outer[2] = outer.at(), last.at()
	table := newTable()
	if n := table.Note(thread.at(), 11); n != 0 {
		t.Errorf("a stack without frames: %d", n)
	}
	if table.Entries() != 2 || table.Entry(0) != inner.at() || table.Entry(1) != outer.at() {
		t.Errorf("%d entries: %#x, %#x", table.Entries(), table.Entry(0), table.Entry(1))
	}
	last[2] = inner.at() // a circle, as in memory that is no interpreter's
	if table.Note(thread.at(), 11); table.Entries() != depthMax {
		t.Errorf("%d entries of a circle", table.Entries())
	}
	runtime.KeepAlive([]words{inner, outer, last})
}
