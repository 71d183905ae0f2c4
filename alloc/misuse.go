package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// Faults that the secure mode finds in a block or a slot.
const (
	foundBehind = iota + 1
	foundCanary
	foundFreed
	foundUsed
	foundLink
	foundTail
)

// running is the call that a thread is in, for the line that names it. For a call that frees it
// holds the name, a C string, and the argument. For a call that allocates it holds 1 + its number
// (stats.Call…). It is zero if no call is to be named.
type running struct{ name, arg, number uintptr }

// warned has a bit for each check that only warns (config.Check…).
var warned uintptr

// warns reports whether a check only warns.
func warns(check uint32) bool { return warned>>(check&31)&1 != 0 }

// Misuse ends the process with one line that names the function (the C string at fn), its pointer,
// and what is wrong with it. size is the size that the caller states, or NoSize.
func Misuse(fn, addr, why, size uintptr) {
	var l raw.Line
	l.Text("tieralloc: ")
	tellMisuse(&l, fn, addr, why, size)
	l.Die()
}

// warn writes the line of Misuse for the call in as a warning.
func warn(in *running, why, size uintptr) {
	var l raw.Line
	l.Text("tieralloc: warning: ")
	tellMisuse(&l, in.name, in.arg, why, size)
	l.Tell()
}

func tellMisuse(l *raw.Line, fn, addr, why, size uintptr) {
	l.CStr(fn)
	l.Text("(")
	l.Hex(addr)
	l.Text("): ")
	p := Lookup(addr)
	switch {
	case why == FreeStale:
		l.Text("the block was freed before")
	case why == FreeDouble && p != nil:
		l.Text("double free of a block")
		tellSize(l, p)
	case why == FreeUsed && p != nil:
		l.Text("use after free of a block")
		tellSize(l, p)
	case why == FreeInside && p != nil:
		l.Text("not the start of a block")
		tellPlace(l, p, addr)
	case why == FreeKind && p != nil:
		tellBlock(l, p, addr)
		l.Text(" was made by ")
		l.Text(maker(p.made(addr) & familyMask))
	case why == FreeSize && p != nil:
		tellBlock(l, p, addr)
		l.Text(" is freed as one of ")
		l.Dec(uint64(size))
	case why == FreeDamaged && p != nil:
		tellFound(l, p, addr, foundCanary)
	default:
		l.Text("not a pointer that malloc returned")
	}
}

// tellSize names the size of the blocks of p. A nursery does not keep the sizes of freed blocks.
func tellSize(l *raw.Line, p *Page) {
	if !p.isNursery() {
		l.Text(" of ")
		l.Dec(uint64(p.Size))
		l.Text(" bytes")
	}
}

// tellPlace names the blocks of p, or the one of a nursery in which addr lies.
func tellPlace(l *raw.Line, p *Page, addr uintptr) {
	if !p.isNursery() {
		l.Text("; it lies in memory of ")
		l.Dec(uint64(p.Size))
		l.Text("-byte blocks")
		return
	}
	t, u := p.table(), p.granule(addr)
	for u != 0 && t.cont.has(u) {
		u--
	}
	if !t.free.has(u) {
		l.Text("; it lies in a block of ")
		l.Dec(uint64(t.granulesOf(u) * sizeclass.Granule))
		l.Text(" bytes")
	}
}

// judge returns whether the call in may free a block of n bytes that a function of the family made
// allocated, as a result of Free. It may not if it belongs to another family, or states another
// size. If the check only warns, it prints the line and allows the free.
func judge(in *running, made, n, how, size uintptr) uintptr {
	if family := how >> HowFamily & familyMask; family != HowAny>>HowFamily && family != made {
		if !warns(config.CheckDeallocType) {
			return FreeKind
		}
		warn(in, FreeKind, size)
	}
	if size != NoSize && size != n {
		if !warns(config.CheckDeleteSize) {
			return FreeSize
		}
		warn(in, FreeSize, size)
	}
	return FreeOK
}

// caller returns the call that the owner of a page of slots is in.
func (p *Page) caller() *running {
	return &heapOf(atomic.LoadUintptr(&p.Owner)).Thread.running
}

// maker returns the name of a family of functions that allocate.
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

// made returns the family of functions that allocated a live block.
func (p *Page) made(b uintptr) uintptr {
	if p.Owner == OwnerHuge {
		return uintptr(p.family())
	}
	return canaryState(p.canary(b))
}

// corrupt ends the process because the call in has found damage that it did not cause.
func corrupt(in *running, p *Page, slot, what uintptr) {
	var l raw.Line
	l.Text("tieralloc: ")
	switch {
	case in.name != 0:
		l.CStr(in.name)
		l.Text("(")
		l.Hex(in.arg)
		l.Text("): ")
	case in.number != 0:
		l.Text(stats.CallName(in.number - 1))
		l.Text(": ")
	}
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
	case foundCanary:
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
	n := p.usable(b)
	l.Text("the block at ")
	l.Hex(b)
	l.Text(" of ")
	l.Dec(uint64(n))
	l.Text(" bytes, size class ")
	l.Dec(uint64(p.Size))
	l.Text(",")
}
