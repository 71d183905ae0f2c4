package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"math/bits"
)

// A pickler writes a Python pickle of dictionaries, lists, strings, numbers and truth values. It
// uses only opcodes that the page pytorch.org/memory_viz reads, too, which is why it is no library.
// The first error remains in the writer until Flush.
type pickler struct {
	w    *bufio.Writer
	memo *uint32 // how many objects were remembered
}

func newPickler(w io.Writer) pickler {
	p := pickler{bufio.NewWriter(w), new(uint32)}
	p.op(0x80, 4) // PROTO
	return p
}

func (p pickler) op(bytes ...byte) { _, _ = p.w.Write(bytes) }

// end writes the end, and returns the first error.
func (p pickler) end() error {
	p.op('.') // STOP
	return p.w.Flush()
}

// dict writes a dictionary. items writes its keys and values in turn.
func (p pickler) dict(items func()) {
	p.op('}', '(') // EMPTY_DICT, MARK
	items()
	p.op('u') // SETITEMS
}

// listBatch is how many elements are put into a list at once, as by Python's own pickler.
const listBatch = 1000

// list writes a list of n elements. item writes the i-th.
func (p pickler) list(n int, item func(i int)) {
	p.op(']') // EMPTY_LIST
	for i := 0; i < n; {
		p.op('(') // MARK
		for end := min(n, i+listBatch); i < end; i++ {
			item(i)
		}
		p.op('e') // APPENDS
	}
}

// remember has the object that was written last remembered, and returns its number.
func (p pickler) remember() (n uint32) {
	p.op(0x94) // MEMOIZE
	*p.memo++
	return *p.memo - 1
}

// again writes a remembered object.
func (p pickler) again(n uint32) {
	p.op('j') // LONG_BINGET
	p.op(binary.LittleEndian.AppendUint32(nil, n)...)
}

// pair writes a tuple of two numbers.
func (p pickler) pair(a, b uint64) {
	p.number(a)
	p.number(b)
	p.op(0x86) // TUPLE2
}

func (p pickler) text(s string) {
	p.op('X') // BINUNICODE
	p.op(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))...)
	_, _ = p.w.WriteString(s)
}

func (p pickler) truth(b bool) {
	if b {
		p.op(0x88) // NEWTRUE
		return
	}
	p.op(0x89) // NEWFALSE
}

func (p pickler) number(n uint64) {
	if n < 1<<31 {
		p.op('J') // BININT
		p.op(binary.LittleEndian.AppendUint32(nil, uint32(n))...)
		return
	}
	size := bits.Len64(n)/8 + 1 // with a bit for the sign
	p.op(0x8a, byte(size))      // LONG1
	p.op(append(binary.LittleEndian.AppendUint64(nil, n), 0)[:size]...)
}

// Entries of a dictionary.

func (p pickler) textOf(key, value string)          { p.text(key); p.text(value) }
func (p pickler) numberOf(key string, value uint64) { p.text(key); p.number(value) }
