package stats

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

const asks = uintptr(len(LivePage{}.Asks))

// LiveAsked returns the value of Asked of a request, and whether it is to be answered.
//
// Precondition: the thread is between LiveBegin and LiveCommit or LiveDrop.
func LiveAsked(what uintptr) (asked uint64, open bool) {
	if atomic.LoadUint32(&live.claim) == 0 {
		return 0, false // as in LiveCommit
	}
	a := &(*LivePage)(raw.Ptr(live.page)).Asks[what%asks]
	asked = atomic.LoadUint64(&a.Asked)
	return asked, asked != atomic.LoadUint64(&a.Done)
}

// LiveAnswer answers asked of a request with an errno and the file's path, n bytes. The
// precondition is that of LiveAsked.
func LiveAnswer(what uintptr, asked uint64, errno, path, n uintptr) {
	if atomic.LoadUint32(&live.claim) == 0 {
		return
	}
	a := &(*LivePage)(raw.Ptr(live.page)).Asks[what%asks]
	n = min(n, LivePathSize)
	for i := uintptr(0); i < n; i++ {
		a.Path[i&(LivePathSize-1)] = raw.LoadByte(path + i)
	}
	a.PathLen, a.Errno = uint64(n), uint64(errno)
	atomic.StoreUint64(&a.Done, asked)
}

// LiveOrdered copies the order of AskRegions. The precondition is that of LiveAsked.
func LiveOrdered(out *LiveOrder) {
	if atomic.LoadUint32(&live.claim) == 0 {
		return
	}
	o := &(*LivePage)(raw.Ptr(live.page)).Order
	out.Until, out.Kind = atomic.LoadUint64(&o.Until), atomic.LoadUint64(&o.Kind)
	out.Device = atomic.LoadUint64(&o.Device)
	out.Name[0], out.Name[1] = atomic.LoadUint64(&o.Name[0]), atomic.LoadUint64(&o.Name[1])
}
