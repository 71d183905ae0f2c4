package manager

import (
	"syscall"

	"tieralloc/internal/raw"
)

// A Call is one question to a manager. All fields are words, so that C sees the same
// structure (interpose/layout.h).
type Call struct {
	Op         uint64 // an Op
	Token      uint64 // the thread's name for locks
	Manager    uint64 // its address
	Instance   uint64
	Name       uint64 // a C string
	Group      uint64 // a C string
	Proportion uint64 // the bits of a double
	Bytes      uint64
	Count      uint64
	Kind       uint64 // of memory: Kind…
	Free       uint64 // bytes that the device has free
	Address    uint64
	Stream     uint64
	Evict, Arg uint64 // what C calls to have an instance give way
	Ready      uint64 // what C calls when an instance has what it wanted
	Context    uint64 // the device's primary context
	Value      uint64 // answers
	Extra      uint64
}

// What a Call is for.
const (
	OpCreate  uint64 = iota + 1 // Manager of Bytes of device Count with Context, called Name
	OpDestroy                   //
	OpDevice                    // Value: the device, Context
	OpMode                      // Count: 0 passive, 1 active
	// Instance with Name, Group, Proportion (negative: automatic), Evict, Arg
	OpRegister
	OpUnregister //
	OpManual     // Instance has Proportion from now on
	OpAuto       // Instance shares what manual ones leave
	OpGroup      // Instance belongs to Group
	// Value, Extra: the sums of the manual and automatic proportions, bits of doubles
	OpPools
	OpGet       // fills in the Info at Address
	OpAvailable // Value: bytes that Group may have, of Free
	// cuts Count requests at Address of Group with Bytes runs, of Free, Kind: 0 a figure,
	// FreeOfHeap the device heap's; fills in the Chunking at Value
	OpChunk
	OpCharge   // Instance is about to have Bytes more, of Kind
	OpUncharge // and has not got them
	// it has, at Address, for Stream; Extra: the round of its queue, if it is for that
	OpAdd
	// the block at Address is no more: Bytes, Kind, Stream that its instance used last
	OpRemove
	OpUse // Instance works with what it has, on Stream
	// Count: 1 Instance is allocated for from now on, and not asked to give way; 0 no longer
	OpHold
	OpAccount // Instance has Bytes (as a signed number) more from other sources
	// the instance that is to give way to Instance for Bytes, used after Extra and before Free, at
	// first 0: Manager its manager, Value it, Bytes it has, Extra its last use, Stream, Evict, Arg.
	// Count: 1 of all groups of all managers of the device, 0 of its own
	OpCandidate
	// a block that Instance, not used after Extra, can be deprived of: Address, and Stream that it
	// was allocated for
	OpFirst
	OpEvicted    // Instance gave way
	OpRefused    // Instance got nothing
	OpStreamEnd  // Stream is about to end; of no Manager
	OpContextEnd // Context has ended; of no Manager
	// Ready and Arg are what C calls when Instance's group has been allocated for
	OpReady
	// Instance wants Count requests at Address with Bytes runs, and nothing else any more
	OpQueue
	// cuts what the group of Instance wants, of Free and Kind as in OpChunk: fills in the Chunking
	// at Value, and begins round Extra; Bytes: the device's memory, 0: not known, then the runs;
	// Count: 1 if it would not fit though all gave way
	OpPlan
	// a request of round Extra without a block, in chunks of Free runs, 0: all at once: Value its
	// instance, Count which, Bytes, Kind
	OpWanted
	// the Count-th request of Instance has its block, at Address; 0: it needs none
	OpPlace
	// an instance of round Extra, which is over for it: Value, Ready, Arg; its Count blocks to
	// Address
	OpTell
	OpTakeBack  // a block of round Extra: Address. The request has none any more
	OpRoundOver // round Extra is over, and all is wanted still
)

// Kinds of memory.
const (
	KindDevice uint64 = iota
	KindPinned
	KindMapped
	KindManaged
	kinds
)

// StreamGone stands for the stream of an instance that has ended: its work may not have.
const StreamGone = ^uint64(0)

// What Serve returns besides 0 and an errno. No errno of ours is 1.
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

// most is the largest number of bytes that is counted with: sums of two stay whole.
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
		c.Value, c.Context = m.device, m.context
		return 0
	case OpMode:
		if c.Count > 1 {
			return invalid
		}
		m.active = c.Count
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

// serveInstance answers what is about one instance.
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
		i.tell((*Info)(raw.Ptr(uintptr(c.Address))))
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
		return i.hold(c.Count)
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

// serveQueue answers what is about what an instance wants.
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

// Fork: the forking thread takes the lock, so that what it guards is whole in the child.

// ForkPrepare takes the lock, and reports whether the thread did not hold it.
func ForkPrepare(token uintptr) bool { return lock.Take(token) }

// ForkParent lets it go in the parent.
func ForkParent() { lock.Release() }

// ForkChild lets it go in the child, but where interrupted code of the thread will.
func ForkChild(token uintptr, taken bool) {
	if taken || !lock.HeldBy(token) {
		lock.Reset()
	}
}
