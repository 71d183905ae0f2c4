package cudahook

import "sync/atomic"

// peers are the pairs of contexts where user may access the memory of owner. A free in owner waits
// for the work of user as well. tableLock guards changes. The owner is written last and read first.
var peers [peerMax]peer

type peer struct {
	user, owner uint64 // owner 0: an empty place
	access      uint64 // the bit of the user's device, if its kernels may access the memory
}

const (
	peerMax     = 128
	contextsMax = 1 + peerMax + heapMax
)

// crowded is set when a pair did not fit. From then on all contexts are waited for.
var crowded uint32

// paired is set once there has been a pair.
var paired uint32

// setPeer notes that user may access the memory of owner; access is 0, or the bit of the user's
// device if its kernels may. The pair stays until one of them ends,
// even if the access is disabled: work submitted before then continues.
func setPeer(token uintptr, user, owner, access uint64) {
	if !tableLock.Take(token) {
		return
	}
	empty := (*peer)(nil)
	for i := range peers {
		p := &peers[i]
		if p.owner == owner && p.user == user {
			atomic.StoreUint64(&p.access, p.access|access)
			tableLock.Release()
			return
		}
		if p.owner == 0 && empty == nil {
			empty = p
		}
	}
	atomic.StoreUint32(&paired, 1)
	if empty != nil {
		atomic.StoreUint64(&empty.user, user)
		atomic.StoreUint64(&empty.access, access)
		atomic.StoreUint64(&empty.owner, owner)
	} else {
		atomic.StoreUint32(&crowded, 1)
	}
	tableLock.Release()
}

// accessTo returns the devices whose kernels may access the memory of a context, a bit each.
func accessTo(owner uint64) (access uint64) {
	for i := range peers {
		if atomic.LoadUint64(&peers[i].owner) == owner {
			access |= atomic.LoadUint64(&peers[i].access)
		}
	}
	return access
}

// isPeer reports whether a context is the user of a pair.
func isPeer(context uint64) bool {
	for i := range peers {
		if atomic.LoadUint64(&peers[i].owner) != 0 && atomic.LoadUint64(&peers[i].user) == context {
			return true
		}
	}
	return false
}

// dropPeers forgets a context that has ended. Precondition: tableLock is held.
func dropPeers(context uint64) {
	for i := range peers {
		if peers[i].owner == context || peers[i].user == context {
			atomic.StoreUint64(&peers[i].owner, 0)
		}
	}
}

// contextAt returns the i-th context (i < contextsMax) whose streams may use the heap's blocks, or
// 0 if there is none at i. These are its own context and those with access to it. With wide, they
// are also all contexts with access to any context and all with a heap. If pairs are missing
// (crowded), all contexts with a heap count too. The heap need not be locked.
func (h *heap) contextAt(i uint64, wide bool) uint64 {
	switch {
	case i == 0:
		return atomic.LoadUint64(&h.context)
	case i <= peerMax:
		p := &peers[(i-1)&(peerMax-1)]
		if owner := atomic.LoadUint64(&p.owner); owner == h.context || wide && owner != 0 {
			return atomic.LoadUint64(&p.user)
		}
		return 0
	}
	if !wide && atomic.LoadUint32(&crowded) == 0 {
		return 0
	}
	c := atomic.LoadUint64(&heaps[(i-1-peerMax)&(heapMax-1)].context)
	if c == atomic.LoadUint64(&h.context) {
		return 0
	}
	return c
}

// idle reports whether the context that was waited for has no work under way. If another context
// than the heap's own failed or ended, the driver has stopped its work.
func (h *heap) idle(r *Request) bool {
	return r.Result == Success || r.OnContext != h.context && !captureError(r.Result)
}

// syncNext waits for the contexts whose streams may use the heap's blocks, one at a time, from the
// request's nextContext on. goOn: all were waited for.
func (h *heap) syncNext(r *Request, phase uint64, wide bool) Action {
	for r.nextContext < contextsMax {
		c := h.contextAt(r.nextContext, wide)
		r.nextContext++
		if !wide && atomic.LoadUint32(&paired) == 0 {
			r.nextContext = contextsMax
		}
		if c != 0 {
			r.OnContext, r.naming = c, 0
			return r.act(phase, ActSynchronize)
		}
	}
	r.nextContext = 0
	return goOn
}
