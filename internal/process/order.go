package process

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/cudahook"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// An order of a reader of the live page has regions of device memory sleep or wake. The thread that
// updates the page may be anywhere in the program, even in the driver, which it must not call then.
// So it only takes the order. The control plane starts a thread that carries it out, and a later
// update publishes the answer.
//
//	none --update--> given --TakeOrder--> taken --EndOrder--> ended --update--> none
//
// The answer is a text: Until of the order, and a line for each region: device, errno, bytes that
// moved, nanoseconds, name.
const (
	orderNone uint32 = iota
	orderGiven
	orderTaken
	orderEnded
)

// order is touched by the one that its state says: an update of the page while it is none or ended,
// and the thread while it is taken.
var order regionOrder

type regionOrder struct {
	state   uint32
	listed  bool // regions and n are filled in
	asked   uint64
	errno   uintptr
	what    stats.LiveOrder
	regions [cudahook.RegionMax]cudahook.Region
	n, next uintptr
	asleep  uint64 // bytes of the region before
	begun   uint64
	text    config.Text
}

// lastByte is that of a region's name (interpose/api_region.c).
const lastByte = 0xff << 56

// answerOrder publishes the answer to an order, or takes the next. Orders that cannot be carried
// out are refused at once. Precondition: as for stats.LiveAsked.
func answerOrder() {
	o := &order
	switch atomic.LoadUint32(&o.state) {
	case orderGiven, orderTaken:
		return
	case orderEnded:
		stats.LiveAnswer(stats.AskRegions, o.asked, o.errno, o.text.Addr(), o.text.Len())
		atomic.StoreUint32(&o.state, orderNone)
		return
	}
	asked, open := stats.LiveAsked(stats.AskRegions)
	if !open {
		return
	}
	stats.LiveOrdered(&o.what)
	o.asked, o.errno = asked, uintptr(noOrder(&o.what))
	o.text.Reset()
	o.text.Dec(o.what.Until)
	o.text.Byte('\n')
	if o.errno != 0 {
		stats.LiveAnswer(stats.AskRegions, asked, o.errno, o.text.Addr(), o.text.Len())
		return
	}
	o.listed = false
	atomic.StoreUint32(&o.state, orderGiven)
}

// noOrder returns why the process does not carry out an order, or 0.
func noOrder(o *stats.LiveOrder) syscall.Errno {
	switch {
	case o.Until < raw.Clock(raw.ClockReal):
		return syscall.ETIMEDOUT
	case !config.InForce.CUDA.Enable:
		return syscall.ENODATA
	case forked || !cudahook.InUse():
		return syscall.ENODEV
	case !config.InForce.Background || atomic.LoadUint32(&controlStopped) != 0:
		return syscall.EOPNOTSUPP
	}
	return 0
}

// TakeOrder reports whether there is an order, which the caller then carries out by NextRegion.
func TakeOrder() bool {
	return atomic.LoadUint32(&order.state) == orderGiven &&
		atomic.CompareAndSwapUint32(&order.state, orderGiven, orderTaken)
}

// NextRegion makes r the request about the next region, whose operation was 0. It reports false
// after the last one, when the order has ended. errno is the result of the request before.
//
// Precondition: the thread has taken the order.
func NextRegion(r *cudahook.Request, errno uintptr) bool {
	o, token := &order, uintptr(r.Token)
	if !o.listed {
		o.listed, o.next = true, 0
		if o.n = cudahook.Regions(token, &o.regions); o.n > cudahook.RegionMax {
			EndOrder(uintptr(syscall.E2BIG))
			return false
		}
	} else {
		o.told(token, errno)
		o.next++
	}
	for ; o.next < o.n; o.next++ {
		if o.means(&o.regions[o.next&(cudahook.RegionMax-1)]) {
			o.ask(r)
			return true
		}
	}
	EndOrder(0)
	return false
}

// means reports whether the order is about a region.
func (o *regionOrder) means(r *cudahook.Region) bool {
	return (o.what.Device == stats.OrderEvery || o.what.Device == r.Device) &&
		(o.what.Name[0] == 0 || o.what.Name[0] == r.ID0 && o.what.Name[1]|lastByte == r.ID1)
}

// ask makes r the request about the next region.
func (o *regionOrder) ask(r *cudahook.Request) {
	of := &o.regions[o.next&(cudahook.RegionMax-1)]
	r.Op = cudahook.OpSleep
	switch o.what.Kind {
	case stats.OrderWake:
		r.Op = cudahook.OpWake
	case stats.OrderKeep:
		r.Count = 1
	}
	r.Device, r.Address, r.Bytes = of.Device, of.ID0, of.ID1
	o.asleep, o.begun = of.BytesAsleep(uintptr(r.Token)), raw.Clock(raw.ClockMono)
}

// told appends the line about a region that the driver has done with.
func (o *regionOrder) told(token, errno uintptr) {
	took := raw.Clock(raw.ClockMono) - o.begun
	of := &o.regions[o.next&(cudahook.RegionMax-1)]
	moved := of.BytesAsleep(token) - o.asleep
	if o.what.Kind == stats.OrderWake {
		moved = -moved
	}
	if int64(moved) < 0 { // the program did something else with it meanwhile
		moved = 0
	}
	o.text.Dec(of.Device)
	o.word(uint64(errno))
	o.word(moved)
	o.word(took)
	o.text.Byte(' ')
	name := [2]uint64{of.ID0, of.ID1 &^ lastByte}
	for at := uintptr(unsafe.Pointer(&name)); raw.LoadByte(at) != 0; at++ { // its last byte is 0
		o.text.Byte(max(raw.LoadByte(at), ' ')) // no line ends within a name
	}
	o.text.Byte('\n')
}

func (o *regionOrder) word(v uint64) {
	o.text.Byte(' ')
	o.text.Dec(v)
}

// EndOrder ends the order that was taken.
func EndOrder(errno uintptr) {
	order.errno = errno
	atomic.StoreUint32(&order.state, orderEnded)
}

// forgetOrder makes a forked child forget its parent's order.
func forgetOrder() { atomic.StoreUint32(&order.state, orderNone) }
