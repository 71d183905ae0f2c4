package profile

import (
	"sync/atomic"

	"tieralloc/internal/unwind"
)

// lately is a site that was found by its key, a hash of the program counters and of what else makes
// a site, so that a stack that comes again is not looked up frame by frame, and without the lock.
// An object that was unloaded changes all keys.
//
//	the upper bits of the key | latelyShortened, if frames were left out | the number of the site
type lately uint64

const (
	latelyShortened = siteCount
	latelyKey       = ^uint64(2*latelyShortened - 1)
)

// keyOf returns the part of a key that the stack makes.
//
//go:noinline
func keyOf(stack *unwind.Stack) uint64 {
	key := uint64(stack.Unloads)
	for i := uintptr(0); i < stack.N; i++ {
		key = mix(key*31 + uint64(stack.Frame[i&(unwind.Frames-1)].PC))
	}
	return key
}

// with adds to a hash of a stack what else makes a site.
func (b *Block) with(hash uint64) uint64 {
	kind := uint64(b.Device)<<24 | uint64(b.Kind)<<16 | uint64(b.Hint)<<8 | uint64(b.Tier)
	return mix(hash ^ mix(kind) ^ mix(b.Thread[0]) ^ mix(b.Thread[1]+1))
}

// recent returns the site of a block with a stack if it was found lately, or nil.
func (t *table) recent(b *Block, stack *unwind.Stack) *Site {
	b.Thread = stack.Thread
	if hasPython(stack) {
		return nil
	}
	return t.latelyAt(b.with(keyOf(stack)))
}

func (t *table) latelyAt(key uint64) *Site {
	l := atomic.LoadUint64((*uint64)(&t.lately[key&(latelyCount-1)]))
	if (l^key)&latelyKey != 0 {
		return nil
	}
	if l&latelyShortened != 0 {
		atomic.AddUint64(&Shortened, 1)
	}
	return &t.sites[l&(siteCount-1)]
}

// siteOfBlock returns the site of a block with a stack that is not recent, or nil without room for
// it. Precondition: the table is held.
func (t *table) siteOfBlock(b *Block, stack *unwind.Stack) *Site {
	t.notePython(b, stack)
	key := b.with(keyOf(stack) + uint64(b.call)<<32)
	if s := t.latelyAt(key); s != nil {
		return s
	}
	s, shortened := t.siteFor(b, stack)
	if s == nil {
		return nil
	}
	l := key&latelyKey | uint64(t.index(s))
	if shortened {
		l |= latelyShortened
		atomic.AddUint64(&Shortened, 1)
	}
	atomic.StoreUint64((*uint64)(&t.lately[key&(latelyCount-1)]), l)
	return s
}

// siteFor returns the site of a block with a stack, or nil if there is no room for it, and whether
// frames were left out.
func (t *table) siteFor(b *Block, stack *unwind.Stack) (s *Site, shortened bool) {
	first := t.frameN
	if first+unwind.Frames > stackWords {
		return nil, false
	}
	n := t.lay(stack, b.call)
	s, frames, hash := t.known(b, first, n)
	if most := t.depth(b.Kind); s == nil && most < n {
		n, shortened = most, most != 0
		s, frames, hash = t.known(b, first, n)
	}
	if s != nil || n == 0 && stack.N != 0 || t.siteN >= siteCount {
		return s, shortened
	}
	s = &t.sites[t.siteN&(siteCount-1)]
	t.siteN++
	s.hash, s.frames, s.Stack, s.Depth = hash, frames, uint32(first), uint32(n)
	s.Hint, s.Tier, s.Thread = b.Hint, b.Tier, b.Thread
	s.Kind, s.Device = b.Kind, b.Device
	if s.Kind != Host {
		t.deviceSites++
	}
	t.frameN += n
	if !t.siteOf.full(t.siteN) {
		t.siteOf.add(uintptr(hash), t.siteN)
		return s, shortened
	}
	t.siteOf.reset(t.siteN)
	for i := uintptr(0); i < t.siteN; i++ {
		t.siteOf.add(uintptr(t.sites[i&(siteCount-1)].hash), i+1)
	}
	return s, shortened
}

// known looks for the site of a block by the n innermost frames, which are in the table from first
// on. If there is none it returns nil.
func (t *table) known(b *Block, first, n uintptr) (s *Site, stack, hash uint64) {
	for i := uintptr(0); i < n; i++ {
		stack = mix(stack*31 + uint64(t.frames[(first+i)&(stackWords-1)]) + 1)
	}
	hash = b.with(stack)
	for k := uintptr(hash); *t.siteOf.slot(k) != 0; k++ {
		s = &t.sites[(*t.siteOf.slot(k)-1)&(siteCount-1)]
		if s.hash == hash && uintptr(s.Depth) == n && t.same(uintptr(s.Stack), first, n) {
			return s, stack, hash
		}
	}
	return nil, stack, hash
}

// depth returns how many frames a new site may have. As the table fills up, only the innermost ones
// are kept, which many stacks share, so that their blocks are not lost: an interpreter has as many
// stacks as its program has. The last sixteenth is for memory of devices.
func (t *table) depth(kind uint32) uintptr {
	switch used := max(t.siteN*16/siteCount, t.frameN*16/stackWords); {
	case kind != Host || used < 8:
		return unwind.Frames
	case used < 12:
		return 24
	case used < 14:
		return 8
	case used < 15:
		return 2
	}
	return 0
}

// same reports whether two rows of n frames are equal.
func (t *table) same(a, b, n uintptr) bool {
	for i := uintptr(0); i < n; i++ {
		if t.frames[(a+i)&(stackWords-1)] != t.frames[(b+i)&(stackWords-1)] {
			return false
		}
	}
	return true
}

// mix is the finalizer of splitmix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// locate returns the number of the location, from 1 on, of frame i of a walk; 0 if there is no
// room for it.
func (t *table) locate(stack *unwind.Stack, i uintptr) uint32 {
	f := &stack.Frame[i&uintptr(len(stack.Frame)-1)]
	object := t.objectFor(f, stack.Unloads)
	at := location{pc: f.PC, object: object}
	for k := at.hash(); *t.locationOf.slot(k) != 0; k++ {
		n := *t.locationOf.slot(k)
		l := &t.locations[(n-1)&(locationCount-1)]
		if *l == at {
			return n
		}
	}
	if t.locationN >= locationCount {
		return 0
	}
	t.locations[t.locationN&(locationCount-1)] = at
	t.locationN++
	if !t.locationOf.full(t.locationN) {
		t.locationOf.add(at.hash(), t.locationN)
		return uint32(t.locationN)
	}
	t.locationOf.reset(t.locationN)
	for i := uintptr(0); i < t.locationN; i++ {
		t.locationOf.add(t.locations[i&(locationCount-1)].hash(), i+1)
	}
	return uint32(t.locationN)
}

func (l *location) hash() uintptr { return uintptr(mix(uint64(l.pc) + uint64(l.object)<<48)) }
