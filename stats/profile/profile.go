// Package profile keeps the samples of a heap profile (TA_PROFILE): which stacks allocated how
// much, and what of it is in use. It is freestanding Go. The heap tells it of sampled blocks
// (alloc/sampled.go), package unwind finds their stacks, and Write writes the table as a pprof
// profile.
package profile

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/lockrank"
	"tieralloc/internal/pystack"
	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
)

// Limits of the table. What is beyond them is counted in Lost. They keep the written profile to
// about a megabyte.
const (
	siteBits      = 12
	siteCount     = 1 << siteBits
	locationCount = 16 << 10
	objectCount   = 512
	nameBytes     = 64 << 10  // the paths of all objects
	stackWords    = 256 << 10 // the frames of all sites
	latelyCount   = 2048
	sampleCount   = 256 << 10 // sampled blocks in use; at a rate of 512 KiB in a heap of 128 GiB
)

// Site is a stack and what of its blocks is of one kind.
//
//	FreedBytes <= Bytes
type Site struct {
	_ raw.OffHeap

	hash   uint64 // of all that tells sites apart
	frames uint64 // of the stack alone
	Stack  uint32 // index of its first location in table.stack
	Depth  uint32
	Hint   uint32 // the blocks' hint, and the tier that they were allocated in
	Tier   uint32
	Kind   uint32    // of the memory (device.go), and the number of its device
	Device uint32    // 0 for memory of the host
	Thread [2]uint64 // the name of the thread, as the kernel has it

	// Estimates for all blocks, in bytes. How many there are is in the site's spread.
	Bytes, FreedBytes float64

	Peak     float64 // of the bytes in use, at the moment of its group's peak
	Recent   float64 // of those in use now, what was allocated late; set by Settle
	Lifetime float64 // nanoseconds, the sum over the blocks that were freed

	sampled uint32 // of the blocks in use, how many are samples; set by Settle

	// Of the sites with the same stack the first one, and, in that, their Bytes (sum, in top.go).
	first uint32
	all   float64
}

func (s *Site) liveBytes() float64 { return load(&s.Bytes) - load(&s.FreedBytes) }

// spread is the sizes of a site's blocks in bytes, and the lifetimes of those that were freed in
// units of 1<<lifetimeShift nanoseconds.
type spread struct {
	_              raw.OffHeap
	size, lifetime histogram
}

// live is how many blocks are in use.
func (d *spread) live() float64 { return d.size.sum - d.lifetime.sum }

const lifetimeShift = 6

// location is a program counter in an object.
type location struct {
	pc     uintptr
	object uintptr // index + 1, or 0
}

// table is all of the profile. It is one mapping, of which the kernel only gives what is used.
//
// Its lock guards stacks and sites, the lock of a part of the samples these samples. What a sample
// adds to its site is added atomically while its part is held. Who holds all locks (Hold) has a
// table that nothing changes.
//
//	siteOf leads to the sites by their hash, locationOf to the locations
type table struct {
	_ raw.OffHeap

	lock raw.PaddedLock

	device    unwind.Stack  // for the stacks of blocks on devices
	python    pystack.Table // the frames of Python
	written   frameSet      // those that a profile has; only while Write runs
	sites     [siteCount]Site
	spreads   [siteCount]spread // of the sites
	uses      [siteCount][heatClasses]use
	locations [locationCount]location
	objects   [objectCount]Object
	names     [nameBytes]byte
	frames    [stackWords]uint32

	siteOf     index
	locationOf index
	samples    samples
	stackOf    index  // of the first sites of the stacks, by the stack alone; only while Top runs
	merged     spread // of the sites with one stack; only while Top runs
	total      Site   // the same

	siteN, locationN, objectN, nameN, frameN uintptr

	deviceN     uintptr // of the samples, those on devices
	deviceSites uintptr // of siteN

	program uintptr // the number of the program's own object, or 0
	tracers *Tracers

	heatTime   float64             // seconds, in which heat was measured
	farthest   uint64              // meanDistance of the highest level of all samples
	fresh      float64             // bytes allocated since the profile was written (every.go)
	live, peak [groupCount]float64 // Σ liveBytes; what it was when the sites' Peak was set
	peaking    uint32              // 1: a thread sets a peak
	start      uint64              // monotonic, nanoseconds
	dropped    uint64              // Lost + Missed when Settle ran: Missed changes at any time
	lately     [latelyCount]lately // by key
}

var (
	t *table

	// Lost counts samples without a place in the table, Missed those taken where the thread could
	// not have the table (in a signal handler), and Broken the stacks whose outermost function was
	// not reached. Shortened counts those of which a part was kept (depth), and Stacks all.
	Lost, Missed, Broken, Shortened, Stacks uint64
)

// Start begins a profile with a sample in rate bytes. tracers are C's; with nil the probes are off.
// It reports false without memory for it.
func Start(rate, now, random uint64, tracers *Tracers) bool {
	at := raw.Map(unsafe.Sizeof(table{}))
	if at == 0 {
		return false
	}
	t = (*table)(raw.Ptr(at))
	if lockrank.On {
		t.rankLocks()
	}
	t.start, t.tracers = now, tracers
	seed = random
	Rate, t.farthest = rate, rate
	return true
}

// Block is what a sample says of its block.
type Block struct {
	Addr   uintptr // on a device the block's number
	Size   uint64  // as the program asked for it
	Hint   uint32
	Tier   uint32
	Kind   uint32 // of the memory; with Device on devices only, Hint and Tier on the host only
	Device uint32
	Now    uint64 // monotonic, nanoseconds
	Level  uint8  // of thinning, at which it was sampled; at most 15

	// Note and EndDevice take these from the walk.
	Thread [2]uint64 // the name of the thread
	call   uint32    // the innermost call of its Python stack, or 0
}

// Note notes a block of the thread named token, whose stack was found. wait says whether the thread
// may wait for another that has the table; if it has not the table, the sample is lost. how is how
// the walk ended.
func Note(token uintptr, wait bool, b *Block, stack *unwind.Stack, how uintptr) {
	if t == nil {
		return
	}
	s := t.recent(b, stack)
	if s == nil {
		if !t.take(&t.lock.Lock, token, wait) {
			Miss()
			return
		}
		s = t.siteOfBlock(b, stack)
		t.lock.Release()
	}
	t.note(token, wait, b, s, how, nil)
}

// note enters the sample of a block of a site, or counts it as lost without one. A block on a
// device that was lost with its context has none.
func (t *table) note(token uintptr, wait bool, b *Block, s *Site, how uintptr, ended *Ended) {
	p := t.samples.of(b.Addr)
	if !t.take(&p.Lock, token, wait) {
		Miss()
		return
	}
	if ended == nil || !ended.has(b.Addr) {
		atomic.AddUint64(&Stacks, 1)
		if how == unwind.Broken {
			atomic.AddUint64(&Broken, 1)
		}
		t.drop(b.Addr, b.Now) // a block that was resized where it is
		if s == nil || !t.keep(b, s) {
			atomic.AddUint64(&Lost, 1)
		} else if s.Kind == Host {
			t.traceAlloc(b)
		}
	}
	p.Release()
}

// Freed notes that the block at addr is free. wait is as for Note.
func Freed(token, addr uintptr, wait bool) {
	if t == nil || !t.samples.mayHave(addr) {
		return
	}
	p := t.samples.of(addr)
	if !t.take(&p.Lock, token, wait) {
		Miss()
		return
	}
	t.drop(addr, raw.Clock(raw.ClockMono))
	p.Release()
}

// On reports whether there is a profile.
func On() bool { return t != nil }

// ForkChild makes the profile usable in a forked child, which draws samples of its own. If another
// thread of the parent held the table, as may be where no fork handler ran, it may be half written,
// and the child has no profile.
func ForkChild(token uintptr) {
	if t != nil {
		forkChild(token)
	}
}

//go:noinline
func forkChild(token uintptr) {
	for i := uintptr(0); t != nil && i < lockCount; i++ {
		if l := t.lockAt(i); l.Held() && !l.HeldBy(token) {
			t = nil
		}
	}
	Forks++
	pid, _ := raw.Sys(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	seed = mix(seed ^ uint64(pid)<<40 ^ raw.Clock(raw.ClockMono))
}

// keep enters a sampled block and adds it to its site. Precondition for this, drop and remove: its
// part is held.
func (t *table) keep(b *Block, s *Site) bool {
	k := t.index(s)
	e := sample{addr: b.Addr, born: t.since(b.Now), what: whatOf(b.Level, b.Size, k)}
	if !t.samples.add(e) {
		return false
	}
	raise(&t.farthest, uint64(meanDistance(b.Level)))
	w := s.weight(&e)
	t.spreads[k&(siteCount-1)].size.add(b.Size, w)
	bytes := w * float64(b.Size)
	add(&s.Bytes, bytes)
	add(&t.live[s.group()&(groupCount-1)], bytes)
	if s.Kind == Host {
		t.allocated(bytes)
	} else {
		atomic.AddUintptr(&t.deviceN, 1)
	}
	return true
}

func (t *table) index(s *Site) uintptr {
	return (uintptr(unsafe.Pointer(s)) - uintptr(unsafe.Pointer(&t.sites))) / unsafe.Sizeof(Site{})
}

// since returns the nanoseconds from the table's start to a time.
func (t *table) since(now uint64) uint64 { return now - min(now, t.start) }

// drop removes the sample of the block at addr, if there is one.
func (t *table) drop(addr uintptr, now uint64) {
	p := t.samples.of(addr)
	if i, ok := p.find(addr); ok {
		t.remove(p, i, now)
	}
}

// remove takes the sample in slot i of a part out of the table.
func (t *table) remove(p *part, i uintptr, now uint64) {
	e := p.slot(i)
	s := &t.sites[e.site()]
	if s.Kind == Host {
		t.traceFree(e.addr)
	} else {
		atomic.AddUintptr(&t.deviceN, ^uintptr(0))
	}
	t.notePeak(s.group())
	w := s.weight(e)
	bytes := w * float64(e.size())
	lifetime := t.since(now) - min(t.since(now), e.born)
	t.spreads[e.site()].lifetime.add(lifetime>>lifetimeShift, w)
	add(&s.FreedBytes, bytes)
	add(&s.Lifetime, w*float64(lifetime))
	add(&t.live[s.group()&(groupCount-1)], -bytes)
	t.samples.vacate(p, i)
}

// notePeak keeps the sites' bytes where the process has more of a group in use than at the peak
// before by a hundredth. So the cost of a growing heap's many peaks stays small.
func (t *table) notePeak(g uintptr) {
	if load(&t.live[g&(groupCount-1)]) > load(&t.peak[g&(groupCount-1)])*1.01 &&
		atomic.CompareAndSwapUint32(&t.peaking, 0, 1) {
		t.setPeak(g)
		atomic.StoreUint32(&t.peaking, 0)
	}
}

// setPeak makes the present the peak of a group, where other threads may change it meanwhile.
//
//	Σ Peak of its sites == t.peak[g]
func (t *table) setPeak(g uintptr) {
	sum := 0.0
	for i := uintptr(0); i < t.siteN; i++ {
		if s := &t.sites[i&(siteCount-1)]; s.group() == g {
			s.Peak = s.liveBytes()
			sum += s.Peak
		}
	}
	store(&t.peak[g&(groupCount-1)], sum)
}

// Settle completes the table for a reader: the peaks of the sites, how much of their bytes in use
// was allocated in the last half of the time, how many samples they stand on, and how many were
// dropped. Precondition: the
// table is held.
func Settle(now uint64) {
	t.dropped = Lost + atomic.LoadUint64(&Missed)
	for g := uintptr(0); g < groupCount; g++ {
		if t.live[g&(groupCount-1)] > t.peak[g&(groupCount-1)] {
			t.setPeak(g) // so that no profile has more in use than at its peak
		}
	}
	for i := uintptr(0); i < t.siteN; i++ {
		s := &t.sites[i&(siteCount-1)]
		s.Recent, s.sampled = 0, 0
	}
	half := t.since(now) / 2
	for e, at := t.samples.next(place{}); e != nil; e, at = t.samples.next(at) {
		s := &t.sites[e.site()]
		s.sampled++
		if e.born > half {
			s.Recent += s.weight(e) * float64(e.size())
		}
	}
}
