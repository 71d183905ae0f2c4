package manager

import (
	"syscall"

	"tieralloc/internal/raw"
)

// A Call is a call of a manager, with its answer. The list of operations says which fields each
// uses. All fields are words, so that C sees the same structure (interpose/layout.h).
type Call struct {
	Op       Op
	Token    uint64 // the thread's name for locks
	Manager  uint64 // the manager's address
	Instance uint64 // the instance that the call is about

	Name       uint64 // a C string
	Group      uint64 // a C string
	Proportion uint64 // the bits of a double
	Device     uint64 // ordinal
	Context    uint64 // the device's primary context
	On         uint64 // 1, or 0

	// A block of memory.
	Address uint64
	Bytes   uint64
	Kind    uint64 // Kind…
	Stream  uint64

	// What C calls, with Arg.
	Evict uint64 // asks an instance to free its memory
	Ready uint64 // tells an instance that its queued requests have memory
	Arg   uint64

	// Requests, and how they are chunked.
	Requests   uint64 // their address
	Count      uint64 // of them
	Index      uint64 // the number of one of them
	Runs       uint64 // the length of the axis that they are chunked along
	Round      uint64 // the number of an allocation for a group; 0: none
	Free       uint64 // bytes that the device has free
	FreeOfHeap uint64 // 1: Free comes from the device heap
	Memory     uint64 // bytes of the device; 0: not known
	Hopeless   uint64 // 1: they would not fit if all instances were evicted
	Out        uint64 // address of the structure or array to fill in

	// The search for an eviction candidate.
	Everywhere   uint64 // 1: in all groups of all managers of the device; 0: in its group
	After, Until uint64 // bounds of its last use: later than After, not later than Until
	Found        uint64 // the instance
	FoundManager uint64
	FoundBytes   uint64 // its bytes

	Available         uint64 // bytes
	Manual, Automatic uint64 // sums of proportions, the bits of doubles
}

// An Op is the operation of a Call.
type Op uint64

// The operations. Unless they say otherwise, they concern Instance of Manager.
const (
	OpCreate  Op = iota + 1 // makes a manager of Bytes of Device with Context, called Name
	OpDestroy               // ends Manager
	OpDevice                // answers Device and Context of Manager
	OpMode                  // makes Manager active if On, else passive
	// adds Instance with Name, Group, Proportion (negative: automatic), Evict, Arg
	OpRegister
	OpUnregister
	OpManual    // sets Proportion
	OpAuto      // makes Instance automatic: it shares what manual instances leave
	OpGroup     // moves Instance to Group
	OpPools     // answers Manual and Automatic
	OpGet       // fills in the Info at Out
	OpAvailable // answers Available: the bytes of Free that Group may allocate
	// chunks Count Requests of Group with Runs to fit Free, FreeOfHeap; fills in the Chunking at
	// Out
	OpChunk
	OpCharge   // books Bytes of Kind before they are allocated
	OpUncharge // undoes OpCharge
	OpAdd      // enters the block, allocated for Stream, in Round
	// removes the block at Address; answers Bytes, Kind, and the Stream that its instance used
	// last
	OpRemove
	OpUse     // notes that Instance uses its memory on Stream
	OpHold    // On: Instance cannot be evicted, because it is allocating; else ends that
	OpAccount // books Bytes (a signed number) from other sources
	// finds an instance to evict so that Instance gets Bytes, Everywhere, within After and Until:
	// both 0 at first, then as answered. Answers Found, FoundManager, FoundBytes, Stream, Evict,
	// Arg
	OpCandidate
	// answers Address and Stream of a block of Instance that may be freed if it was not used after
	// After
	OpFirst
	OpEvicted    // counts an eviction of Instance
	OpRefused    // counts a refused allocation of Instance
	OpStreamEnd  // forgets Stream, which is about to end; concerns all managers
	OpContextEnd // forgets Context, which has ended; concerns all managers
	OpReady      // sets Ready and Arg
	OpQueue      // replaces the queued requests of Instance by Count Requests with Runs
	// chunks the queued requests of the group of Instance to fit Free, FreeOfHeap, Memory. Fills in
	// the Chunking at Out, begins Round, answers Runs; or answers Hopeless
	OpPlan
	// answers a request of Round without a block: Found, Index, Bytes, Kind, in chunks of Runs (0:
	// unchunked)
	OpWanted
	OpPlace // notes that request Index has the block at Address; 0: it needs none
	// ends Round for an instance: answers Found, Ready, Arg and Count, and writes the addresses of
	// its blocks to Out
	OpTell
	OpTakeBack  // takes a block of Round from its request and answers its Address
	OpRoundOver // ends Round; its requests stay queued
)

// Kinds of memory.
const (
	KindDevice uint64 = iota
	KindPinned
	KindMapped
	KindManaged
	kinds
)

// StreamGone stands for a stream that has ended. Its work may still be running.
const StreamGone = ^uint64(0)

// Warned is the result of a call that succeeded with a warning. It differs from every errno that
// Serve returns.
const Warned uint64 = 1

const (
	notThere  = uint64(syscall.ENOENT)
	tooLarge  = uint64(syscall.E2BIG)
	noMemory  = uint64(syscall.ENOMEM)
	busy      = uint64(syscall.EBUSY)
	known     = uint64(syscall.EEXIST)
	invalid   = uint64(syscall.EINVAL)
	noSpace   = uint64(syscall.ENOSPC)
	overFull  = uint64(syscall.ERANGE)
	deadlock  = uint64(syscall.EDEADLK)
	unchunked = uint64(syscall.ENOTSUP)
)

// most is the largest count of bytes. The sum of two does not overflow.
const most = 1 << 62

var lock raw.Lock

// Serve answers a call: 0, Warned, or an errno.
func Serve(c *Call) uint64 {
	if !lock.Take(uintptr(c.Token)) { // a signal handler interrupted a call of the same thread
		return deadlock
	}
	answer := serve(c)
	lock.Release()
	return answer
}

func serve(c *Call) uint64 {
	switch c.Op {
	case OpCreate:
		return create(c)
	case OpStreamEnd:
		streamEnds(c.Stream)
		return 0
	case OpContextEnd:
		contextEnds(c.Context)
		return 0
	}
	m := (*manager)(raw.Ptr(uintptr(c.Manager)))
	if m == nil || m.live == 0 {
		return invalid
	}
	switch c.Op {
	case OpDestroy:
		return m.destroy()
	case OpDevice:
		c.Device, c.Context = m.device, m.context
		return 0
	case OpMode:
		if c.On > 1 {
			return invalid
		}
		m.active = c.On
		return 0
	case OpRegister:
		return m.register(c)
	case OpPools:
		return m.pools(c)
	case OpAvailable:
		return m.answerAvailable(c)
	case OpChunk:
		return m.chunk(c)
	case OpRemove:
		return m.remove(c)
	case OpWanted, OpTell, OpTakeBack, OpRoundOver:
		return m.serveRound(c)
	}
	i := m.find(c.Instance)
	if i == nil {
		return notThere
	}
	return m.serveInstance(c, i)
}

// serveInstance answers a call about one instance.
func (m *manager) serveInstance(c *Call, i *instance) uint64 {
	switch c.Op {
	case OpUnregister:
		return m.unregister(i)
	case OpManual:
		return m.setManual(i, c.Proportion)
	case OpAuto:
		return m.setAuto(i)
	case OpGroup:
		if !i.group.set(uintptr(c.Group)) {
			return invalid
		}
		return 0
	case OpGet:
		i.tell((*Info)(raw.Ptr(uintptr(c.Out))))
		return 0
	case OpCharge:
		return m.charge(c, i)
	case OpUncharge:
		m.uncharge(i, c.Bytes)
		return 0
	case OpAdd:
		return m.add(c, i)
	case OpUse:
		i.useOn(c.Stream)
		return 0
	case OpHold:
		return i.hold(c.On)
	case OpAccount:
		return i.account(int64(c.Bytes))
	case OpCandidate:
		return m.candidate(c, i)
	case OpFirst:
		return c.first(i)
	case OpEvicted:
		i.evictions++
		return 0
	case OpRefused:
		i.refused++
		return 0
	}
	return m.serveQueue(c, i)
}

// serveQueue answers a call about the requests that an instance has queued.
func (m *manager) serveQueue(c *Call, i *instance) uint64 {
	switch c.Op {
	case OpReady:
		i.ready, i.readyArg = c.Ready, c.Arg
		return 0
	case OpQueue:
		return m.enqueue(c, i)
	case OpPlan:
		return m.plan(c, i)
	case OpPlace:
		return c.place(i)
	}
	return invalid
}

// Fork: the forking thread takes the lock, so that the child gets consistent accounts.

// Holds reports whether the thread holds the lock: it is then in a signal handler that interrupted
// itself.
func Holds(token uintptr) bool { return lock.HeldBy(token) }

// ForkPrepare takes the lock, and reports whether it has. Without wait it leaves the lock to
// another thread that holds it.
func ForkPrepare(token uintptr, wait bool) bool { return lock.TakeIf(token, wait) }

// ForkParent releases it in the parent.
func ForkParent() { lock.Release() }

// ForkChild releases it in the child, except if interrupted code of this thread holds it and will
// release it itself.
func ForkChild(token uintptr, taken bool) {
	if taken || !lock.HeldBy(token) {
		lock.Reset()
	}
}
