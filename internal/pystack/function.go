package pystack

import "tieralloc/internal/raw"

// A Function is told from others by its name and its file: a code object that is compiled again is
// the same function.
type Function struct {
	raw.OffHeap
	Name, File Text

	Number uint32 // for the user of the table
}

// A Text is UTF-8 of the table.
type Text struct{ at, N uint32 }

// A place is an instruction of a code object that was met lately, and its frame.
type place struct {
	raw.OffHeap
	code, instr uintptr
	sum         uint64 // of the code object: another may have its address later
	frame       uint32
}

// frameOf returns the number of the frame of the code object at an address and an instruction, or 0
// if that is no code, or the table is full. The interpreter has its frame at another address.
func (t *Table) frameOf(c *code, frame, at, instr uintptr) uint32 {
	basic, ok := t.is(c[1], &t.codeType, codeName, 5)
	if !ok {
		return 0
	}
	if basic != 0 {
		t.codeBytes = basic
	}
	sum := c.sum(t.minor)
	p := t.place(mix(sum ^ uint64(at) ^ mix(uint64(instr))))
	if p.frame != 0 && p.code == at && p.instr == instr && p.sum == sum {
		return p.frame
	}
	function := t.functionOf(c)
	if function == 0 {
		return 0
	}
	n := t.frames.number(function, t.lineOf(c, t.instructions(frame, at), instr))
	t.full = t.full || n == 0
	p.code, p.instr, p.sum, p.frame = at, instr, sum, n
	return n
}

// place returns the place for a hash. As many as there are rows of frames are in use.
func (t *Table) place(h uint64) *place {
	return &t.places[h&uint64(max(t.frames.rows, rowsLeast)-1)&(placeMax-1)]
}

// functionOf returns the number of the function of a code object, or 0 if the table is full.
func (t *Table) functionOf(c *code) uint32 {
	if t.texts > textMax-2*stringBytes {
		t.full = true
		return 0
	}
	start, lastFile := t.texts, t.file
	name, file := t.copyText(c.qualname()), t.copyFile(c.file())
	row := uint32(t.hash(name) ^ mix(t.hash(file)))
	for range functionRows {
		row++
		n := t.functionAt[row&(functionRows-1)]
		if n == 0 {
			break
		}
		f := &t.function[(n-1)&(functionMax-1)]
		if t.same(f.Name, name) && t.same(f.File, file) {
			t.texts, t.file = start, lastFile
			return n
		}
	}
	if t.functions >= functionMax {
		t.full = true
		return 0
	}
	f := &t.function[t.functions&(functionMax-1)]
	f.Name, f.File = name, file
	t.functions++
	t.functionAt[row&(functionRows-1)] = t.functions
	return t.functions
}

func (t *Table) same(a, b Text) bool {
	same := a.N == b.N
	for i := uint32(0); i < a.N && same; i++ {
		same = t.Byte(a, i) == t.Byte(b, i)
	}
	return same
}

func (t *Table) hash(s Text) (h uint64) {
	for i := uint32(0); i < s.N; i++ {
		h = h*31 + uint64(t.Byte(s, i))
	}
	return mix(h)
}
