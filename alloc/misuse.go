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
		return uintptr(p.Class)
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

// The last word of a slot is its canary:
//
//	bits 0-7    zero: it ends a string without an end, so that the canary is not printed
//	bits 8-27   the size of the block, or a number that varies
//	bits 28-31  the state
//	bits 32-63  a check value
//
//	canary = 0 in a slot that was never used; all of it is zero then
//	stateClean:   all before the canary is zero
//	stateListed:  all before it except the first two words is zero; the first is an encoded link
//	live, fence:  the bytes between the size and the canary are filled: at least one, none of
//	              them 0, so that a string's end written after the block is detected
//	stateBusy:    any of it may be about to change
//
// A thread that examines another thread's slot reads the canary, the contents, and the canary
// again. If the canary has not changed, the contents belong to the state: a thread that changes a
// slot makes it busy first, and on amd64 stores become visible in their order.
const (
	canaryBytes = 8
	slotExtra   = canaryBytes + 1 // bytes of a slot beyond its block, at least
	canaryMask  = 0xffff_ffff_0000_0000

	stateKinds  = 3 // states below this are live blocks: the family that allocated them
	stateFence  = 8 // the first slot of a page, which is never handed out
	stateClean  = 9
	stateListed = 10
	stateBusy   = 11
)

const (
	stateShift = 20
	sizeMask   = 1<<stateShift - 1
)

// CanaryFactor is 2^64 divided by the golden ratio.
const CanaryFactor = 0x9e3779b97f4a7c15

// slotKey returns the number for the slot at b from which its canary and its fill are computed.
func slotKey(b uintptr) uint64 { return (uint64(b) ^ secret.canary) * CanaryFactor }

// canaryFor returns the canary of the slot at b in a state.
func canaryFor(b, state, n uintptr) uintptr {
	what := uint64(state<<stateShift|n&sizeMask) & 0xff_ffff << 8
	check := (slotKey(b) + what) * CanaryFactor
	return uintptr(check&canaryMask | what)
}

func canaryState(l uintptr) uintptr { return l >> (8 + stateShift) & 15 }
func canarySize(l uintptr) uintptr  { return l >> 8 & sizeMask }

// canaryValid reports whether l is a canary of the slot at b.
func canaryValid(b, l uintptr) bool { return l == canaryFor(b, canaryState(l), canarySize(l)) }

// room returns the bytes of a slot before its canary.
func (p *Page) room() uintptr { return p.Size - canaryBytes }

func (p *Page) canaryWord(b uintptr) *uintptr { return (*uintptr)(raw.Ptr(b + p.room())) }

func (p *Page) canary(b uintptr) uintptr { return atomic.LoadUintptr(p.canaryWord(b)) }

func (p *Page) setCanary(b, state, n uintptr) {
	atomic.StoreUintptr(p.canaryWord(b), canaryFor(b, state, n))
}

// fillOf returns a word of the fill of the slot at b. None of its bytes is 0.
func fillOf(b uintptr) uintptr {
	return uintptr(slotKey(b) ^ secret.fill | 0x0101_0101_0101_0101)
}

// fill writes fill from offset from of the slot or block at b up to offset to, a multiple
// of 8.
func fill(b, from, to uintptr) {
	w := fillOf(b)
	for ; from&7 != 0 && from < to; from++ {
		raw.StoreByte(b+from, byte(w>>(from&7*8)))
	}
	for ; from < to; from += 8 {
		raw.Store(b+from, w)
	}
}

// fillIntact reports whether that fill is unchanged.
func fillIntact(b, from, to uintptr) bool {
	w := fillOf(b)
	for ; from&7 != 0 && from < to; from++ {
		if raw.LoadByte(b+from) != byte(w>>(from&7*8)) {
			return false
		}
	}
	for ; from < to; from += 8 {
		if raw.Load(b+from) != w {
			return false
		}
	}
	return true
}

// wipe zeroes n bytes at addr, multiples of 8.
func wipe(addr, n uintptr) {
	end := addr + n
	for ; addr+32 <= end; addr += 32 {
		*(*[4]uint64)(raw.Ptr(addr)) = [4]uint64{}
	}
	for ; addr < end; addr += 8 {
		raw.Store(addr, 0)
	}
}

// blank reports whether the bytes from addr up to end, multiples of 8, are zero.
func blank(addr, end uintptr) bool {
	bits := uintptr(0)
	for ; addr+32 <= end; addr += 32 {
		bits |= raw.Load(addr) | raw.Load(addr+8) | raw.Load(addr+16) | raw.Load(addr+24)
	}
	for ; addr < end; addr += 8 {
		bits |= raw.Load(addr)
	}
	return bits == 0
}
