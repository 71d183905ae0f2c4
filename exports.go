// Command tieralloc is built as a C shared library, build/libtieralloc.so, that manages memory for
// unmodified programs.
//
// This file exports the data plane to C. C calls the exports through the gate in interpose/, never
// through the Go runtime. Arguments and results are integers of pointer size.
package main

import (
	"unsafe"

	"tieralloc/alloc"
	"tieralloc/cudahook"
	"tieralloc/cudahook/manager"
	"tieralloc/internal/config"
	_ "tieralloc/internal/control"
	"tieralloc/internal/process"
	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
	_ "tieralloc/interpose"
	"tieralloc/stats"
	"tieralloc/stats/profile"
	"tieralloc/tiers"
)

import "C"

func main() {}

func heap(h uintptr) *alloc.Heap { return (*alloc.Heap)(raw.Ptr(h)) }

//export ta_go_boot
func ta_go_boot(arg uintptr) { process.Boot(arg) }

//export ta_go_acquire
func ta_go_acquire(token uintptr) uint {
	return uint(uintptr(unsafe.Pointer(alloc.Acquire(token))))
}

//export ta_go_leave
func ta_go_leave(h uintptr) { alloc.Leave(heap(h)) }

//export ta_go_abandon
func ta_go_abandon(h uintptr) { alloc.Abandon(heap(h)) }

//export ta_go_malloc
func ta_go_malloc(h, n, allowed, how uintptr) uint {
	b := alloc.Malloc(heap(h), n, allowed, how)
	process.Pulse(heap(h))
	return uint(b)
}

//export ta_go_alloc
func ta_go_alloc(h, n, hint uintptr) uint { return uint(alloc.Alloc(heap(h), n, hint)) }

//export ta_go_renew
func ta_go_renew(h, n, allowed, old uintptr) uint {
	b := alloc.Renew(heap(h), n, allowed, old)
	process.Pulse(heap(h))
	return uint(b)
}

//export ta_go_aligned
func ta_go_aligned(h, align, n, allowed, how uintptr) uint {
	return uint(alloc.Aligned(heap(h), align, n, allowed, how))
}

//export ta_go_site_set
func ta_go_site_set(depth, path, offset uintptr) uint {
	return uint(tiers.CallerSet(depth, path, offset))
}

//export ta_go_site_functions
func ta_go_site_functions(depth uintptr) uint { return uint(tiers.FunctionRules(depth)) }

//export ta_go_site_function
func ta_go_site_function(depth, set uintptr) uint {
	return uint(tiers.FunctionName(depth, uint64(set)))
}

//export ta_go_site_deep
func ta_go_site_deep() uint { return uint(tiers.DeepRules()) }

//export ta_go_site_begin
func ta_go_site_begin(thread uintptr) uint {
	return uint(uintptr(unsafe.Pointer((*alloc.Thread)(raw.Ptr(thread)).WalkBegin())))
}

//export ta_go_site_end
func ta_go_site_end(thread uintptr) { (*alloc.Thread)(raw.Ptr(thread)).WalkEnd() }

//export ta_go_copied
func ta_go_copied(h, p, n uintptr) { alloc.Copied(heap(h), p, n) }

//export ta_go_charge
func ta_go_charge(h, tier, n uintptr) uint { return uint(alloc.Charge(heap(h), tier, n)) }

//export ta_go_move
func ta_go_move(h, p, tier uintptr) uint { return uint(alloc.Move(heap(h), p, tier)) }

//export ta_go_tier_of
func ta_go_tier_of(p uintptr) uint { return uint(alloc.TierOf(p)) }

//export ta_go_tier_of_range
func ta_go_tier_of_range(p, offset, n, to uintptr) uint {
	return uint(alloc.TierOfRange(p, offset, n, to))
}

//export ta_go_set_hint
func ta_go_set_hint(h, hint uintptr) uint { return uint(alloc.SetHint(heap(h), hint)) }

//export ta_go_set_default_hint
func ta_go_set_default_hint(h, hint uintptr) uint {
	return uint(process.SetDefaultHint(heap(h), hint))
}

//export ta_go_renamed
func ta_go_renamed(h uintptr) { alloc.Renamed(heap(h)) }

//export ta_go_free
func ta_go_free(h, p, how, size, name uintptr) uint {
	why := alloc.Free(heap(h), p, how, size, name)
	process.Pulse(heap(h))
	return uint(why)
}

//export ta_go_free_poor
func ta_go_free_poor(token, p, how, size, name uintptr) uint {
	return uint(alloc.FreePoor(token, p, how, size, name))
}

//export ta_go_usable
func ta_go_usable(p uintptr) uint { return uint(alloc.Usable(p)) }

//export ta_go_connect
func ta_go_connect(h, p uintptr) {
	alloc.Connect(heap(h), (*alloc.Page)(raw.Ptr(p)))
}

//export ta_go_page_empty
func ta_go_page_empty(h, p uintptr) {
	alloc.PageEmpty(heap(h), (*alloc.Page)(raw.Ptr(p)))
	process.Pulse(heap(h))
}

//export ta_go_resize
func ta_go_resize(h, p, n uintptr) uint { return uint(alloc.Resize(heap(h), p, n)) }

//export ta_go_trim
func ta_go_trim(h uintptr) uint { return uint(alloc.Trim(heap(h))) }

//export ta_go_misuse
func ta_go_misuse(fn, p, why, size uintptr) { alloc.Misuse(fn, p, why, size) }

//export ta_go_sample_begin
func ta_go_sample_begin(h uintptr) uint {
	return uint(uintptr(unsafe.Pointer(alloc.SampleBegin(heap(h)))))
}

//export ta_go_sample_step
func ta_go_sample_step(stack, how uintptr) uint {
	return uint(unwind.Step((*unwind.Stack)(raw.Ptr(stack)), how))
}

//export ta_go_sample_end
func ta_go_sample_end(h, how uintptr) { alloc.SampleEnd(heap(h), how) }

//export ta_go_sample_took
func ta_go_sample_took(h, start, end uintptr) {
	alloc.SampleTook(heap(h), uint64(start), uint64(end))
}

//export ta_go_cuda_step
func ta_go_cuda_step(r uintptr) uint {
	q := (*cudahook.Request)(raw.Ptr(r))
	action := cudahook.Step(q)
	if cudahook.RefusalDue() {
		process.Refused(uintptr(q.Token))
	}
	return uint(action)
}

//export ta_go_cuda_sample_begin
func ta_go_cuda_sample_begin(r uintptr) uint {
	q := (*cudahook.Request)(raw.Ptr(r))
	stack := cudahook.SampleBegin(q, !alloc.Holds(uintptr(q.Token)))
	return uint(uintptr(unsafe.Pointer(stack)))
}

//export ta_go_cuda_sample_end
func ta_go_cuda_sample_end(r, how uintptr) {
	q := (*cudahook.Request)(raw.Ptr(r))
	cudahook.SampleEnd(q, !alloc.Holds(uintptr(q.Token)), how)
}

//export ta_go_cuda_configure
func ta_go_cuda_configure(token, device, key, value uintptr) uint {
	return uint(cudahook.Configure(token, uint64(device), uint64(key), uint64(value)))
}

//export ta_go_cuda_take
func ta_go_cuda_take(token, device, stream, bytes uintptr) uint {
	return uint(cudahook.Take(token, device, stream, bytes))
}

//export ta_go_cuda_give
func ta_go_cuda_give(token, device, stream, address uintptr) uint {
	if cudahook.Give(token, device, stream, address) {
		return 1
	}
	return 0
}

//export ta_go_manager
func ta_go_manager(c uintptr) uint { return uint(manager.Serve((*manager.Call)(raw.Ptr(c)))) }

//export ta_go_cuda_log
func ta_go_cuda_log(event, a, b uintptr) {
	stats.Put1(config.LogWarn, stats.EventKind(event), a, b)
}

//export ta_go_cuda_figures
func ta_go_cuda_figures(token, device, to uintptr) uint {
	if cudahook.FiguresOf(token, uint64(device), (*stats.PublicDevice)(raw.Ptr(to))) {
		return 1
	}
	return 0
}

//export ta_go_cuda_history
func ta_go_cuda_history(token, device, buf, n uintptr) uint {
	return uint(cudahook.History(token, uint64(device), buf, n))
}

//export ta_go_fork_prepare
func ta_go_fork_prepare(token, alone uintptr) uint {
	wait := process.MayWait(token)
	if wait && alone != 0 {
		return 0 // there is nobody to hold a lock against
	}
	taken := cudahook.ForkPrepare(token, wait) << forkShift
	if manager.ForkPrepare(token, wait) {
		taken |= forkManager
	}
	return uint(taken | alloc.ForkPrepare(token))
}

//export ta_go_fork_parent
func ta_go_fork_parent(taken uintptr) {
	alloc.ForkParent(taken & forkMask)
	if taken&forkManager != 0 {
		manager.ForkParent()
	}
	cudahook.ForkParent(taken &^ forkManager >> forkShift)
}

//export ta_go_fork_child
func ta_go_fork_child(token, taken, h, alone uintptr) (torn uint) {
	if alloc.ForkChild(token, taken&forkMask, heap(h), alone != 0) {
		torn = 1
	}
	cudahook.ForkChild(token, taken&^forkManager>>forkShift)
	manager.ForkChild(token, taken&forkManager != 0)
	process.ForkChild()
	return torn
}

//export ta_go_fork_unprepared
func ta_go_fork_unprepared(token, h uintptr) {
	alloc.ForkUnprepared(token, heap(h))
	cudahook.ForkChild(token, 0)
	manager.ForkChild(token, false)
	process.ForkChild()
}

// The result of ta_go_fork_prepare: what ForkPrepare of package alloc returned in the lowest bits,
// that of cudahook above it, that of manager in the highest bit.
const (
	forkShift   = 8
	forkMask    = 1<<forkShift - 1
	forkManager = 1 << 63
)

//export ta_go_service
func ta_go_service(token uintptr) uint {
	if process.Service(token) {
		return 1
	}
	return 0
}

//export ta_go_order_due
func ta_go_order_due() uint {
	if process.TakeOrder() {
		return 1
	}
	return 0
}

//export ta_go_order_next
func ta_go_order_next(request, errno uintptr) uint {
	if process.NextRegion((*cudahook.Request)(raw.Ptr(request)), errno) {
		return 1
	}
	return 0
}

//export ta_go_order_fail
func ta_go_order_fail(errno uintptr) { process.EndOrder(errno) }

//export ta_go_service_heat
func ta_go_service_heat(token, regions, n, ns uintptr) {
	profile.Heat(token, regions, n, float64(ns)/1e9)
}

//export ta_go_service_survey
func ta_go_service_survey(token, survey uintptr) uint {
	return uint(alloc.SurveyNext(token, survey))
}

//export ta_go_service_move
func ta_go_service_move(token, block, start, n, tier uintptr) uint {
	now := uintptr(raw.Clock(raw.ClockMono))
	return uint(alloc.Follow(token, now, block, start, n, tier))
}

//export ta_go_service_distinguish
func ta_go_service_distinguish(token, block, start, n, plain uintptr) uint {
	if alloc.Distinguish(token, block, start, n, plain != 0) {
		return 1
	}
	return 0
}

//export ta_go_control_place
func ta_go_control_place(addr, n uintptr) { alloc.PlacementControl(addr, n) }

//export ta_go_control_due
func ta_go_control_due(awhile uintptr) uint {
	if process.ControlDue(awhile != 0) {
		return 1
	}
	return 0
}

//export ta_go_control_again
func ta_go_control_again() { process.ControlAgain() }

//export ta_go_control_stop
func ta_go_control_stop(why uintptr) { process.ControlStop(why) }

//export ta_go_report
func ta_go_report(token uintptr) { process.Report(token) }

//export ta_go_stats
func ta_go_stats(token, out, size uintptr) uint { return uint(process.Stats(token, out, size)) }

//export ta_go_sizes
func ta_go_sizes(token, out, n uintptr) uint {
	return uint(process.FreeBlocks(token, out, n))
}

//export ta_go_stats_json
func ta_go_stats_json(token, buf, n, exact uintptr) uint {
	return uint(process.StatsJSON(token, buf, n, exact != 0))
}

//export ta_go_stats_write
func ta_go_stats_write(token, path, n uintptr) uint {
	return uint(process.WriteStats(token, path, n))
}
