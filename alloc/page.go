package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

const (
	SliceShift = sizeclass.SliceShift
	SliceSize  = sizeclass.SliceSize // the unit of spans and of the page map
)

// Page is the descriptor of a span: a page of blocks of one class, a free span,
// or a huge block. It lies outside the memory it describes and is three cache
// lines: one that everyone reads, one that the owning thread writes, one that
// other threads write. Descriptors are recycled, never unmapped.
//
// For a page of blocks, with remoteCount the blocks on the remote list:
//
//	live   = Allocs - Frees - remoteCount
//	stride = Size + Gap
//	carved = stride·(Allocs - Frees + len(Free list) + blocks that start in subreleased parts)
//	carved <= stride·blocks <= slices·SliceSize - (Start - spanStart)
//
// A nursery has no list (nursery.go).
//
// The comment of a field gives its meaning for a page of blocks. If it has others, by the role of
// the span, the comment names their views; see pagestates.go.
//
// The field order is known to the fast path: interpose/layout.h is generated
// from this struct.
type Page struct {
	_ raw.OffHeap

	// the heap's address, |OwnerFull when no block is free, |OwnerWarm by its class; or ownerNone,
	// OwnerZero, OwnerHuge
	Owner uintptr
	Start uintptr // address of the first block; of a free span or a mapping, of its memory
	// sizeclass.DivMagic(stride); 0 where the fast path is not to see a block: of slots (slot.go),
	// zero pages, huge blocks
	Magic  uint64
	Size   uintptr // block size in bytes; of a huge block, all from Start on
	Class  uint32  // of the blocks, see sizeclass; or family
	Hint   uint32  // what the blocks are for: tiers.Hot, …
	slices uint32  // of the span; 0 of a mapping
	blocks uint32  // capacity in blocks
	carved uint32  // bytes ever put to use, from Start on; the rest is untouched
	zero   uint8   // not 0: what is not yet carved reads as zero; see freelists.go
	state  uint8
	pages  uint8 // of a huge block: systemPages, …
	role   uint8 // roleNursery, roleCut, roleSampled, or 0
	// carved, as the fast path may know it: see subrelease.go; or request, takenEnd
	Carved uint64

	// list of free blocks, linked by their first word (see encodeLink); or reservation, searchFrom
	Free    uintptr
	Allocs  uint64 // blocks handed out by the owner, ever; or parts
	Frees   uint64 // blocks taken back by the owner, ever
	Trigger uint64 // Frees == Trigger calls PageEmpty; or reservation, nurseryRest
	next    *Page  // in a list of the heap or a bin of the pool; or nextExtent
	prev    *Page  // the same; or in a hugeList
	// in a list by age: of free dirty spans, spans in use (age.go) or zero pages; or nextAlone
	ageNext *Page
	agePrev *Page

	Remote       uintptr // blocks freed by other threads: count<<48 | address | flags
	pendNext     *Page   // in the owner's list of pages with news; or nextLive
	segment      *segment
	stamp        uint64 // a note of when the page was looked at; or freeSince, table
	placement    uint32 // where its memory is: see placement.go
	home         uint32 // the tier that the hint, or ta_move, wants it in
	list         uint16 // the list by age that a span in use is on
	Gap          uint16 // bytes between blocks (sizeclass.Spread); or blockOffset
	moving       uint32 // see migrate.go
	unmigrated   uint32 // memory pages charged to the placement unmigratedIn instead
	unmigratedIn uint32
	done         uint32 // slices of the first part, which lie in unmigratedIn: see huge.go; or tail
	subreleased  uint32 // see subrelease.go
}

// Owner values that are no heap, and the flags on one that is.
const (
	ownerNone = 0
	OwnerZero = 2 // of blocks of 0 bytes: see zero.go
	OwnerHuge = 4
	OwnerFull = 1 // the page is on no list of its heap; the next free brings it back
	// its class is warm: see freelists.go. So the fast path knows without a test of the class
	OwnerWarm = 8

	ownerFlags = OwnerFull | OwnerWarm
)

// States of a span: clean and dirty ones are free and in the pool's bins, a
// purging one is on its way from dirty to clean and in no list.
//
//	clean → inUse → dirty → purging → clean
const (
	spanInUse = iota
	spanClean
	spanDirty
	spanPurging
	spanHuge
	spanHugeCached
	spanHugeAlone // made without the pool: see spanalloc.go
	spanZero      // never anything else: see zero.go
)

// Flags and fields of Page.Remote. Blocks are 16-byte aligned, addresses have 47
// bits.
const (
	RemoteNotify   = 1 // the owner asks to be told of the next remote free
	RemoteInFlight = 2 // told: the page is, or is about to be, on the owner's pending list
	RemoteFlags    = 15
	RemoteShift    = 48
	RemoteAddr     = 1<<RemoteShift - 1 - RemoteFlags
)

// class is the page's class, as an index: see sizeclass.Index.
func (p *Page) class() uintptr { return sizeclass.Index(uintptr(p.Class)) }

func (p *Page) bytes() uintptr { return uintptr(p.slices) << SliceShift }

// spanStart is where the memory of the page begins. Only its blocks may begin later.
func (p *Page) spanStart() uintptr {
	if p.segment == nil {
		return p.Start
	}
	return p.Start &^ (SliceSize - 1)
}

// lead is how many bytes of the span lie before its first block.
func (p *Page) lead() uintptr { return p.block() - p.spanStart() }

// remoteCount is how many blocks wait on the remote list.
func (p *Page) remoteCount() uint64 {
	return uint64(atomic.LoadUintptr(&p.Remote) >> RemoteShift)
}

// allFree reports whether no block of the page is in use, counting those on the
// remote list. Precondition: the caller owns the page.
func (p *Page) allFree() bool { return p.Allocs == p.Frees+p.remoteCount() }

// What a page can be besides (Page.role).
const (
	roleNursery = 1 // nursery.go
	roleCut     = 2 // a huge block that was cut off the mapping of the one before it (hugecache.go)
	roleSampled = 3 // with a sampled block among others (sampled.go)
)

func (p *Page) isNursery() bool { return p.role == roleNursery }
