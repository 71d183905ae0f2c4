package alloc

import (
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// What the secure mode finds of a block, or a slot of none.
const (
	foundBehind = iota + 1
	foundLabel
	foundFreed
	foundUsed
	foundLink
	foundTail
)

// found is what was found, on the way to the end of the process: the slot, what is wrong
// with it, the size that a caller named, and the call that is under way: the number of one that
// allocates, or the name and argument of one that frees. Several threads may write it: then one of them is told of.
var found struct{ slot, what, size, call, name, arg uintptr }

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
	case why == FreeKind && p != nil:
		tellBlock(&l, p, addr)
		l.Text(" was made by ")
		l.Text(maker(p.made(addr) & familyMask))
	case why == FreeSize && p != nil:
		tellBlock(&l, p, addr)
		l.Text(" is freed as one of ")
		l.Dec(uint64(found.size))
	case why == FreeDamaged && p != nil:
		tellFound(&l, p, found.slot, found.what)
	default:
		l.Text("not a pointer that malloc returned")
	}
	l.Die()
}

// maker is a family of functions that make blocks, in words.
func maker(family uintptr) string {
	switch family {
	case 0:
		return "malloc or its like"
	case 1:
		return "operator new"
	case 2:
		return "operator new[]"
	}
	return "another function"
}

// made is the family of functions that made a live block.
func (p *Page) made(b uintptr) uintptr {
	if p.Owner == OwnerHuge {
		return uintptr(p.Class)
	}
	return labelState(p.label(b))
}

// corrupt ends the process when a call, which did nothing wrong, has found something.
func corrupt(p *Page, slot, what uintptr) {
	var l raw.Line
	l.Text("tieralloc: ")
	if found.name != 0 {
		l.CStr(found.name)
		l.Text("(")
		l.Hex(found.arg)
		l.Text(")")
	} else {
		l.Text(stats.CallName(found.call))
	}
	l.Text(": ")
	tellFound(&l, p, slot, what)
	l.Die()
}

func tellFound(l *raw.Line, p *Page, slot, what uintptr) {
	switch what {
	case foundBehind:
		tellBlock(l, p, slot)
		l.Text(" was written behind its end")
		return
	case foundTail:
		l.Text("memory behind the last block at ")
	case foundUsed:
		l.Text("memory between blocks at ")
	case foundLabel:
		l.Text("the end of the slot at ")
	default:
		l.Text("the freed block at ")
	}
	l.Hex(slot)
	l.Text(", size class ")
	l.Dec(uint64(p.Size))
	l.Text(", was written")
}

// tellBlock names a live block.
func tellBlock(l *raw.Line, p *Page, b uintptr) {
	l.Text("the block at ")
	l.Hex(b)
	l.Text(" of ")
	l.Dec(uint64(p.usable(b)))
	l.Text(" bytes, size class ")
	l.Dec(uint64(p.Size))
	l.Text(",")
}
