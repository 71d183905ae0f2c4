package manager

import (
	"syscall"

	"tieralloc/internal/raw"
)

// A Call is one question to a manager, with its answer. Each operation uses some of the fields,
// which the list of operations names. All are words, so that C sees the same structure
// (interpose/layout.h).
type Call struct {
	Op       Op
	Token    uint64 // the thread's name for locks
	Manager  uint64 // its address
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
	Evict uint64 // to have an instance give way
	Ready uint64 // when an instance has what it wanted
	Arg   uint64

	// Requests, and how they are cut.
	Requests   uint64 // their address
	Count      uint64 // of them
	Index      uint64 // which of them
	Runs       uint64 // how many the axis has that they are cut along
	Round      uint64 // of the allocation for a group; 0: none
	Free       uint64 // bytes that the device has free
	FreeOfHeap uint64 // 1: Free is what the device heap says
	Memory     uint64 // bytes of the device; 0: not known
	Hopeless   uint64 // 1: they would not fit though all instances gave way
	Out        uint64 // address of the structure or array that is filled in

	// The search for an instance that gives way.
	Everywhere   uint64 // 1: in all groups of all managers of the device; 0: in its group
	After, Until uint64 // times of use: the instance was used after the one, and before the other
	Found        uint64 // the instance
	FoundManager uint64
	FoundBytes   uint64 // what it has

	Available         uint64 // bytes
	Manual, Automatic uint64 // sums of proportions, the bits of doubles
}

// An Op says what a Call is for.
type Op uint64

// The operations. Where no other instance is named, they are about Instance of Manager.
const (
	OpCreate  Op = iota + 1 // answers Manager of Bytes of Device with Context, called Name
	OpDestroy               // ends Manager
	OpDevice                // answers Device and Context of Manager
	OpMode                  // makes Manager active if On, else passive
	// adds Instance with Name, Group, Proportion (negative: automatic), Evict, Arg
	OpRegister
	OpUnregister
	OpManual    // sets Proportion
	OpAuto      // has Instance share what manual ones leave
	OpGroup     // moves Instance to Group
	OpPools     // answers Manual and Automatic
	OpGet       // fills in the Info at Out
	OpAvailable // answers Available: what Group may have of Free
	// cuts Count Requests of Group with Runs for Free, FreeOfHeap; fills in the Chunking at Out
	OpChunk
	OpCharge   // books Bytes of Kind before they are allocated
	OpUncharge // takes that back
	OpAdd      // enters the block, allocated for Stream, in Round
	// takes out the block at Address; answers Bytes, Kind, and the Stream that its instance used
	// last
	OpRemove
	OpUse     // notes that Instance works with what it has, on Stream
	OpHold    // On: Instance is allocated for, and not asked to give way; else no longer
	OpAccount // books Bytes (a signed number) from other sources
	// finds the instance that is to give way to Instance for Bytes, Everywhere, After and Until: at
	// first 0, then as answered. Answers Found, FoundManager, FoundBytes, Stream, Evict, Arg
	OpCandidate
	// answers Address and Stream of a block that Instance, not used After, can be deprived of
	OpFirst
	OpEvicted    // notes that Instance gave way
	OpRefused    // notes that Instance got nothing
	OpStreamEnd  // forgets Stream, which is about to end; of no Manager
	OpContextEnd // forgets Context, which has ended; of no Manager
	OpReady      // sets Ready and Arg
	OpQueue      // replaces what Instance wants by Count Requests with Runs
	// cuts what the group of Instance wants for Free, FreeOfHeap, Memory: fills in the Chunking at
	// Out, begins Round, answers Runs; or answers Hopeless
	OpPlan
	// answers a request of Round without a block: Found, Index, Bytes, Kind, in chunks of Runs, 0:
	// all at once
	OpWanted
	OpPlace // gives the request of Index its block at Address; 0: it needs none
	// ends Round for an instance: answers Found, Ready, Arg and Count, and writes the addresses of
	// its blocks to Out
	OpTell
	OpTakeBack  // answers a block of Round: Address. The request has none any more
	OpRoundOver // ends Round; all that it was for is still wanted
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

// Warned is what Serve returns for a success with a warning. No errno that it returns is 1.
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

// most is the largest count of bytes: a sum of two does not overflow.
const most = 1 << 62

var lock raw.Lock

// Serve answers a call: 0, Warned, or an errno.
func Serve(c *Call) uint64 {
	if !lock.Take(uintptr(c.Token)) { // in a signal handler, within a call of the same thread
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

// ForkPrepare takes the lock, and reports whether the thread did not hold it.
func ForkPrepare(token uintptr) bool { return lock.Take(token) }

// ForkParent releases it in the parent.
func ForkParent() { lock.Release() }

// ForkChild releases it in the child, unless interrupted code of the thread holds it and will.
func ForkChild(token uintptr, taken bool) {
	if taken || !lock.HeldBy(token) {
		lock.Reset()
	}
}
