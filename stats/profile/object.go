package profile

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
)

// Object is a program or a library that had code on a stack. It may have been unloaded since.
type Object struct {
	_ raw.OffHeap

	start uintptr // its first address
	link  uintptr // its link map
	bias  uintptr // added to the addresses in the file

	// Its code: the mapping that holds it, and what of the file that is.
	Low, High, Offset uintptr

	Name, NameLen uintptr  // its path
	ID            [32]byte // its build id, of IDLen bytes
	IDLen         uintptr

	unloads uintptr // how many objects had been unloaded when the path was last compared
}

// objectFor returns the number, from 1 on, of the object of a frame; or 0 if there is none, or no
// room for it. unloads is how many objects had been unloaded.
func (t *table) objectFor(f *unwind.Frame, unloads uintptr) uintptr {
	start, link, pc := f.Start, f.Map, f.PC
	if start == 0 {
		return 0
	}
	for i := t.objectN; i > 0; i-- { // the latest first: another may have been there before
		o := &t.objects[(i-1)&(objectCount-1)]
		if o.start == start && o.link == link && pc >= o.Low && pc < o.High &&
			(o.unloads == unloads || o.named(link)) {
			o.unloads = unloads
			return i
		}
	}
	if t.objectN >= objectCount {
		return 0
	}
	o := &t.objects[t.objectN&(objectCount-1)]
	if !o.describe(start, link, pc) {
		return 0
	}
	o.Name, o.NameLen = t.nameOf(link)
	o.unloads = unloads
	t.objectN++
	if !hasName(link) && t.program == 0 {
		t.program = t.objectN
	}
	return t.objectN
}

// The parts of an ELF file's header and of its program headers that are read (elf.h).
const (
	elfMagic   = 0x464c457f
	ehPhoff    = 32
	ehPhentry  = 54
	phFlags    = 4
	phOffset   = 8
	phVaddr    = 16
	phFilesz   = 32
	phMemsz    = 40
	ptLoad     = 1
	ptNote     = 4
	pfExecute  = 1
	noteGNU    = 0x554e47 // "GNU\0"
	ntBuildID  = 3
	mostLoads  = 64
	noteHeader = 16 // with the name
)

func half(at uintptr) uintptr { return uintptr(*(*uint16)(raw.Ptr(at))) }
func word(at uintptr) uintptr { return uintptr(*(*uint32)(raw.Ptr(at))) }

// describe reads the headers of the object at start, which the loader has mapped, and finds the
// part of it with pc in it. It reports false if there is none.
func (o *Object) describe(start, link, pc uintptr) (ok bool) {
	*o = Object{start: start, link: link, bias: raw.Load(link)} // l_addr
	if word(start) != elfMagic {
		return false
	}
	n := half(start + ehPhentry + 2)
	for i := uintptr(0); i < n && i < mostLoads; i++ {
		h := start + raw.Load(start+ehPhoff) + i*half(start+ehPhentry)
		at := o.bias + raw.Load(h+phVaddr)
		switch word(h) {
		case ptLoad:
			if word(h+phFlags)&pfExecute != 0 && pc >= at && pc-at < raw.Load(h+phMemsz) {
				low := at &^ (raw.Page - 1)
				o.Low, o.High = low, raw.RoundUp(at+raw.Load(h+phMemsz), raw.Page)
				o.Offset = raw.Load(h+phOffset) - (at - low)
				ok = true
			}
		case ptNote:
			if o.IDLen == 0 && at >= start {
				o.readNotes(at, at+raw.Load(h+phFilesz))
			}
		}
	}
	return ok
}

// readNotes looks for the build id among the notes from at to end.
func (o *Object) readNotes(at, end uintptr) {
	for at+noteHeader <= end {
		name, size, kind := word(at), word(at+4), word(at+8)
		text := at + 12
		desc := text + raw.RoundUp(name, 4)
		if desc+size > end || desc < at {
			return
		}
		if kind == ntBuildID && name == 4 && word(text) == noteGNU && size <= 32 {
			for i := uintptr(0); i < size; i++ {
				o.ID[i&31] = raw.LoadByte(desc + i)
			}
			o.IDLen = size
			return
		}
		at = desc + raw.RoundUp(size, 4)
	}
}

// linkName returns the address of the path in a link map, which is empty for the program itself.
func linkName(link uintptr) uintptr { return raw.Load(link + 8) }

func hasName(link uintptr) bool { return linkName(link) != 0 && raw.LoadByte(linkName(link)) != 0 }

// named reports whether the object has the path of the link map: the loader may have put another
// one in the place of an object that was unloaded.
func (o *Object) named(link uintptr) bool {
	if !hasName(link) {
		return true
	}
	from := linkName(link)
	for i := uintptr(0); i < o.NameLen; i++ {
		if raw.LoadByte(from+i) != raw.LoadByte(o.Name+i) {
			return false
		}
	}
	return raw.LoadByte(from+o.NameLen) == 0
}

// nameOf keeps the path of an object. The program's own link map has none.
func (t *table) nameOf(link uintptr) (at, n uintptr) {
	at = uintptr(unsafe.Pointer(&t.names)) + t.nameN
	room := nameBytes - t.nameN
	from := linkName(link)
	if !hasName(link) {
		n, _ = raw.Sys(syscall.SYS_READLINKAT, raw.AtFdCwd, raw.Bytes("/proc/self/exe\x00"), at,
			room, 0, 0)
		if int(n) <= 0 || n >= room {
			return at, 0
		}
	} else {
		for n < room && raw.LoadByte(from+n) != 0 {
			raw.StoreByte(at+n, raw.LoadByte(from+n))
			n++
		}
	}
	t.nameN += n
	return at, n
}
