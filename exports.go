// Command tieralloc is built as a C shared library, build/libtieralloc.so, that
// takes over memory in programs that know nothing of it.
//
// This file is the only place where C meets Go: the data plane's exports, called
// through the gate in interpose/ and never through the Go runtime. Arguments and
// results are integers of pointer size.
package main

import (
	"unsafe"

	"tieralloc/alloc"
	"tieralloc/cudahook"
	"tieralloc/cudahook/share"
	"tieralloc/internal/config"
	_ "tieralloc/internal/control"
	"tieralloc/internal/process"
	"tieralloc/internal/raw"
	_ "tieralloc/interpose"
	"tieralloc/stats"
	"tieralloc/tiers"
)

import "C"

func main() {}

func heap(h uintptr) *alloc.Heap { return (*alloc.Heap)(raw.Ptr(h)) }

//export tag_boot
func tag_boot(arg uintptr) uint { return uint(process.Boot(arg)) }

//export tag_acquire
func tag_acquire(token uintptr) uint { return uint(uintptr(unsafe.Pointer(alloc.Acquire(token)))) }

//export tag_leave
func tag_leave(h uintptr) { alloc.Leave(heap(h)) }

//export tag_abandon
func tag_abandon(h uintptr) { alloc.Abandon(heap(h)) }

//export tag_malloc
func tag_malloc(h, n, libs, how uintptr) uint {
	b := alloc.Malloc(heap(h), n, libs, how)
	process.Pulse(heap(h))
	return uint(b)
}

//export tag_alloc
func tag_alloc(h, n, hint uintptr) uint { return uint(alloc.Alloc(heap(h), n, hint)) }

//export tag_renew
func tag_renew(h, n, libs, old uintptr) uint { return uint(alloc.Renew(heap(h), n, libs, old)) }

//export tag_aligned
func tag_aligned(h, align, n, libs, how uintptr) uint {
	return uint(alloc.Aligned(heap(h), align, n, libs, how))
}

//export tag_lib_set
func tag_lib_set(path uintptr) uint { return uint(tiers.LibSet(path)) }

//export tag_copied
func tag_copied(h, p, n uintptr) { alloc.Copied(heap(h), p, n) }

//export tag_charge
func tag_charge(h, tier, n uintptr) uint { return uint(alloc.Charge(heap(h), tier, n)) }

//export tag_move
func tag_move(h, p, tier uintptr) uint { return uint(alloc.Move(heap(h), p, tier)) }

//export tag_tier_of
func tag_tier_of(p uintptr) uint { return uint(alloc.TierOf(p)) }

//export tag_tier_of_range
func tag_tier_of_range(p, offset, n, to uintptr) uint {
	return uint(alloc.TierOfRange(p, offset, n, to))
}

//export tag_set_hint
func tag_set_hint(h, hint uintptr) uint { return uint(alloc.SetHint(heap(h), hint)) }

//export tag_set_default_hint
func tag_set_default_hint(h, hint uintptr) uint {
	return uint(process.SetDefaultHint(heap(h),
		hint))
}

//export tag_renamed
func tag_renamed(h uintptr) { alloc.Renamed(heap(h)) }

//export tag_free
func tag_free(h, p, how, size, name uintptr) uint {
	why := alloc.Free(heap(h), p, how, size, name)
	process.Pulse(heap(h))
	return uint(why)
}

//export tag_free_poor
func tag_free_poor(token, p, how, size, name uintptr) uint {
	return uint(alloc.FreePoor(token, p, how, size, name))
}

//export tag_usable
func tag_usable(p uintptr) uint { return uint(alloc.Usable(p)) }

//export tag_connect
func tag_connect(h, p uintptr) {
	alloc.Connect(heap(h), (*alloc.Page)(raw.Ptr(p)))
}

//export tag_page_empty
func tag_page_empty(h, p uintptr) {
	alloc.PageEmpty(heap(h), (*alloc.Page)(raw.Ptr(p)))
	process.Pulse(heap(h))
}

//export tag_resize
func tag_resize(h, p, n uintptr) uint { return uint(alloc.Resize(heap(h), p, n)) }

//export tag_trim
func tag_trim(h uintptr) uint { return uint(alloc.Trim(heap(h))) }

//export tag_misuse
func tag_misuse(fn, p, why, size uintptr) { alloc.Misuse(fn, p, why, size) }

//export tag_cuda_step
func tag_cuda_step(r uintptr) uint { return uint(cudahook.Step((*cudahook.Request)(raw.Ptr(r)))) }

//export tag_cuda_configure
func tag_cuda_configure(token, device, key, value uintptr) uint {
	return uint(cudahook.Configure(token, uint64(device), uint64(key), uint64(value)))
}

//export tag_cuda_take
func tag_cuda_take(token, device, stream, bytes uintptr) uint {
	return uint(cudahook.Take(token, device, stream, bytes))
}

//export tag_cuda_give
func tag_cuda_give(token, device, stream, address uintptr) uint {
	if cudahook.Give(token, device, stream, address) {
		return 1
	}
	return 0
}

//export tag_share
func tag_share(c uintptr) uint { return uint(share.Serve((*share.Call)(raw.Ptr(c)))) }

//export tag_cuda_log
func tag_cuda_log(event, a, b uintptr) { stats.Put1(config.LogWarn, stats.EventKind(event), a, b) }

//export tag_cuda_figures
func tag_cuda_figures(token, device, to uintptr) uint {
	if cudahook.FiguresOf(token, uint64(device), (*cudahook.Figures)(raw.Ptr(to))) {
		return 1
	}
	return 0
}

//export tag_cuda_history
func tag_cuda_history(token, device, buf, n uintptr) uint {
	return uint(cudahook.History(token, uint64(device), buf, n))
}

//export tag_fork_prepare
func tag_fork_prepare(token uintptr) uint {
	taken := cudahook.ForkPrepare(token)<<forkShift | alloc.ForkPrepare(token)
	if share.ForkPrepare(token) {
		taken |= forkShare
	}
	return uint(taken)
}

//export tag_fork_parent
func tag_fork_parent(taken uintptr) {
	if taken&forkShare != 0 {
		share.ForkParent()
	}
	alloc.ForkParent(taken & forkMask)
	cudahook.ForkParent(taken &^ forkShare >> forkShift)
}

//export tag_fork_child
func tag_fork_child(token, taken, h uintptr) (torn uint) {
	if alloc.ForkChild(token, taken&forkMask, heap(h)) {
		torn = 1
	}
	cudahook.ForkChild(token, taken&^forkShare>>forkShift)
	share.ForkChild(token, taken&forkShare != 0)
	process.ForkChild()
	return torn
}

//export tag_fork_unprepared
func tag_fork_unprepared(token, h uintptr) {
	alloc.ForkUnprepared(token, heap(h))
	cudahook.ForkChild(token, 0)
	share.ForkChild(token, false)
	process.ForkChild()
}

// What the rooms' ForkPrepare say in one word: that of package alloc lowest, that of
// package share highest.
const (
	forkShift = 8
	forkMask  = 1<<forkShift - 1
	forkShare = 1 << 63
)

//export tag_service
func tag_service(token uintptr) uint {
	if process.Service(token) {
		return 1
	}
	return 0
}

//export tag_control_place
func tag_control_place(addr, n uintptr) { alloc.PlaceControl(addr, n) }

//export tag_control_stop
func tag_control_stop(why uintptr) { process.ControlStop(why) }

//export tag_report
func tag_report(token uintptr) { process.Report(token) }

//export tag_stats
func tag_stats(token, out, size uintptr) uint { return uint(process.Stats(token, out, size)) }

//export tag_stats_json
func tag_stats_json(token, buf, n, exact uintptr) uint {
	return uint(process.StatsJSON(token, buf, n, exact != 0))
}

//export tag_stats_write
func tag_stats_write(token, path, n uintptr) uint {
	return uint(process.WriteStats(token, path,
		n))
}
