package cudahook

import (
	"sync/atomic"
	"unsafe"
)

// An allocation of the driver's own is charged to the device's caps as a segment is. The table
// holds its address, so that its free is recognised.

// serveForeign continues a request for an allocation of the driver's own.
func (h *heap) serveForeign(r *Request) Action {
	n := rounded(min(r.Bytes, maxRequest))
	for range serveRounds {
		if action := h.shrink(r, n); action != goOn {
			return action
		}
		if !r.has(short) && h.device.charge(n) {
			r.set(charged)
			atomic.AddUint64(&h.device.foreign, n)
			return r.act(phaseDriver, ActDriver)
		}
		if action := h.shortage(r, n, kindWhole, n); action != goOn {
			return action
		}
	}
	return h.refuse(r)
}

// driven takes the driver's answer to the program's own call.
func (h *heap) driven(r *Request) Action {
	if r.Op == OpFree || r.Op == OpStreamFree {
		return h.drivenFree(r)
	}
	n := rounded(min(r.Bytes, maxRequest))
	r.unset(charged)
	if r.Result != Success {
		h.device.releaseForeign(n)
		if r.Result == ErrorOutOfMemory && !capturing() && !r.has(triedOthers) {
			h.count.driverRefused++
			r.set(short)
			r.returned = 0
			return goOn
		}
		h.count.refused++
		return r.done(r.Result)
	}
	raise(&h.device.peak, atomic.LoadUint64(&h.device.reserved))
	h.count.foreignCalls++
	r.Address = r.Value
	b := h.newBlock()
	if b == nil {
		h.device.releaseForeign(n) // the program has it anyway, uncharged
		return r.done(Success)
	}
	b.address, b.bytes, b.asked, b.state = r.Value, n, r.Bytes, stateForeign
	h.serial++
	b.number = numberBase | h.slot<<numberIndex | h.serial
	if r.Value == 0 || h.table.find(r.Value) != nil || !h.table.add(b) {
		h.dropBlock(b)
		h.device.releaseForeign(n)
		return r.done(Success)
	}
	h.count.foreign += n
	h.count.foreignBlocks++
	return r.done(Success)
}

// freeForeign passes a free to the driver. It removes the block from the table first: once the
// driver has freed it, another thread may get its address before this thread continues.
func (h *heap) freeForeign(r *Request, b *block) Action {
	h.table.remove(b)
	r.Bytes, r.Number = b.asked, b.number // for the trace and the samples
	h.count.frees++
	h.count.foreign -= b.bytes
	h.count.foreignBlocks--
	r.object, r.foreign = uint64(uintptr(unsafe.Pointer(b))), b.bytes
	return r.act(phaseDriver, ActDriver)
}

func (h *heap) drivenFree(r *Request) Action {
	b := h.blockOf(r)
	r.object = 0
	if r.Result != Success && h.table.find(b.address) == nil && h.table.add(b) {
		h.count.frees--
		h.count.foreign += b.bytes
		h.count.foreignBlocks++
		return r.done(r.Result)
	}
	h.device.releaseForeign(b.bytes)
	h.dropBlock(b)
	return r.done(r.Result)
}
