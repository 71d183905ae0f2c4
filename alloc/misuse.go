package alloc

import "tieralloc/internal/raw"

// Misuse ends the process with one line that names the function, whose name is the
// C string at fn, the pointer it was given, and what is wrong with it.
func Misuse(fn, addr, why uintptr) {
	var l raw.Line
	l.Text("tieralloc: ")
	l.CStr(fn)
	l.Text("(")
	l.Hex(addr)
	l.Text("): ")
	p := Lookup(addr)
	switch {
	case why == FreeStale:
		l.Text("the block was freed before")
	case why == FreeDouble && p != nil:
		l.Text("double free of a block of ")
		l.Dec(uint64(p.Size))
		l.Text(" bytes")
	case why == FreeInside && p != nil:
		l.Text("not the start of a block; it lies in memory of ")
		l.Dec(uint64(p.Size))
		l.Text("-byte blocks")
	default:
		l.Text("not a pointer that malloc returned")
	}
	l.Die()
}
