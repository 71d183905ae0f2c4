package pystack

import (
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
)

func newTable() *Table { return (*Table)(raw.Ptr(raw.Map(Size))) }

// TestDecodeLine: entries of each kind.
func TestDecodeLine(t *testing.T) {
	entry := func(kind, units byte) byte { return 0x80 | kind<<3 | (units - 1) }
	lines := []byte{
		entry(15, 1),         // no line
		entry(13, 2), 2 << 1, // 2 further
		entry(3, 1), 0x21, // a short one
		entry(12, 8), 4, 5, // 2 further
		entry(14, 1), 0x40 | 5<<1 | 1, 1, 0, 1, 1, // -37
		entry(10, 1), 0, 0,
	}
	table := newTable()
	copy(table.scratch[:], lines)
	for unit, want := range map[uintptr]uint32{0: 100, 1: 102, 2: 102, 3: 102, 4: 104, 11: 104,
		12: 67, 13: 67, 14: 100} {
		if got := table.decodeLine(100, unit, uintptr(len(lines))); got != want {
			t.Errorf("unit %d: line %d instead of %d", unit, got, want)
		}
	}
}

// TestNoStack: whatever a thread state and its frames point to, there is no stack and no fault.
func TestNoStack(t *testing.T) {
	table := newTable()
	memory := make([]uintptr, 64)
	here := uintptr(unsafe.Pointer(&memory[0]))
	for _, value := range []uintptr{0, 1, here, here + 8, 1 << 46, ^uintptr(0)} {
		for i := range memory {
			memory[i] = value
		}
		for minor := uintptr(10); minor < 16; minor++ {
			for _, thread := range []uintptr{value, here} {
				if n := table.Note(thread, minor); n != 0 {
					t.Errorf("%#x, 3.%d: %d", value, minor, n)
				}
			}
		}
	}
}

// TestFull: a full table of pairs knows those that it has, and has room after Clear. Until then it
// has no more rows than suit its pairs.
func TestFull(t *testing.T) {
	table := newTable()
	for round := range 2 {
		for i := range uint32(PairMax) {
			if n := table.calls.number(i, 1+i%7); n != i+1 {
				t.Fatalf("%d: %d", i, n)
			}
			p := &table.calls
			if round == 0 && (2*p.n > p.rows || p.rows > max(4*p.n, rowsLeast)) {
				t.Fatalf("%d pairs, %d rows", p.n, p.rows)
			}
		}
	}
	if n := table.calls.number(0, 9); n != 0 {
		t.Errorf("%d", n)
	}
	if caller, frame := table.Call(6); caller != 5 || frame != 6 {
		t.Errorf("%d, %d", caller, frame)
	}
	table.Clear()
	if n := table.calls.number(0, 9); n != 1 || table.Calls() != 1 {
		t.Errorf("%d", n)
	}
	rows := 0
	for _, n := range table.calls.at {
		if n != 0 {
			rows++
		}
	}
	if rows != 1 {
		t.Errorf("%d rows after Clear", rows)
	}
}

// TestTexts: texts are compared by what they say.
func TestTexts(t *testing.T) {
	table := newTable()
	text := func(s string) Text {
		at := table.texts
		for i := range len(s) {
			table.putByte(uint32(s[i]))
		}
		return Text{at, uint32(len(s))}
	}
	if a, b := text("load"), text("load"); !table.same(a, b) || table.hash(a) != table.hash(b) {
		t.Error("equal texts differ")
	}
	if a, b := text("load"), text("lead"); table.same(a, b) || table.hash(a) == table.hash(b) {
		t.Error("two texts are the same")
	}
}
