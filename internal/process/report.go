package process

import (
	"syscall"
	"unsafe"

	"tieralloc/alloc"
	"tieralloc/cudahook"
	"tieralloc/cudahook/manager"
	"tieralloc/internal/config"
	"tieralloc/internal/group"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/stats/document"
	"tieralloc/stats/profile"
	"tieralloc/tiers"
)

// Report writes the statistics file, if one is asked for, and ends the log. After a failure it
// prints one line on standard error.
func Report(token uintptr) {
	writeReport(token)
	writeProfile(token)
	closeLive(token)
	logSummary(token)
	stats.LogFinish()
}

// logSummary logs the last event, the summary.
func logSummary(token uintptr) {
	if !stats.Logs(config.LogInfo) {
		return
	}
	r := newReport(token, alloc.NodesNone)
	if r == nil {
		return
	}
	h := &r.Heap
	args := [6]uint64{r.Calls[stats.CallMalloc], r.Calls[stats.CallFree], h.BytesPeak, h.BytesLive,
		h.BlocksLive, r.CallsFailed}
	stats.Put(config.LogInfo, stats.EventSummary, &args)
	dropReport(r)
}

// MayWait reports whether the thread may wait for any lock. In a signal handler that interrupted
// the holder of a lock it may wait for the host heap's alone: another thread may wait for the
// holder meanwhile, and have what the handler wants.
func MayWait(token uintptr) bool {
	return !alloc.Holds(token) && !cudahook.Holds(token) && !manager.Holds(token) &&
		!profile.Holds(token)
}

func writeReport(token uintptr) {
	if !reports || !reportLock.TakeIf(token, MayWait(token)) {
		return
	}
	errno := expand(&reportPath, &statsPath)
	if errno == 0 {
		errno = WriteStats(token, reportPath.Addr(), reportPath.Len())
	}
	if errno != 0 {
		failed("TA_STATS_FILE", &reportPath, errno)
	}
	reportLock.Release()
}

// expand sets name to a template's name for this process, and returns an errno. Without %p that of
// a forked child ends in its id. If it is too long, name is the template.
func expand(name, path *config.Text) (errno uintptr) {
	hasPid, ok := config.Expand(name, path, raw.Pid(), &program, config.InForce.Rank)
	if ok && forked && !hasPid {
		ok = name.Byte('.') && name.Dec(uint64(raw.Pid()))
	}
	if !ok {
		name.Set(path.Addr(), path.Len())
		return uintptr(syscall.ENAMETOOLONG)
	}
	return 0
}

// failed says that the file at path could not be written.
func failed(variable string, path *config.Text, errno uintptr) {
	stats.Put1(config.LogWarn, stats.EventReport, errno, 0)
	complain(variable, path.Addr(), errno)
}

// WriteStats writes a report to the file whose name is the n bytes at path, and
// returns an errno.
func WriteStats(token, path, n uintptr) (errno uintptr) {
	r := newReport(token, usualNodes())
	if r == nil {
		return uintptr(syscall.EAGAIN)
	}
	sites := newSites(token)
	errno = document.WriteFile(path, n, r, sites)
	dropSites(sites)
	dropReport(r)
	return errno
}

// StatsJSON writes the report as JSON to buf, as snprintf would, and returns its length, or 0 if
// there is no memory for it. With exact it asks the kernel for the node of every page, not only of
// a sample.
func StatsJSON(token, buf, n uintptr, exact bool) (need uintptr) {
	nodes := usualNodes()
	if exact {
		nodes = alloc.NodesExact
	}
	r := newReport(token, nodes)
	if r == nil {
		return 0
	}
	sites := newSites(token)
	need = document.JSON(buf, n, r, sites)
	dropSites(sites)
	dropReport(r)
	return need
}

const reportSize = (unsafe.Sizeof(stats.Report{}) + raw.Page - 1) &^ (raw.Page - 1)

// newReport returns a report. nodes, one of alloc's Nodes…, says which pages the kernel is asked
// about.
func newReport(token, nodes uintptr) *stats.Report {
	r := (*stats.Report)(raw.Ptr(raw.Map(reportSize)))
	if r == nil {
		return nil
	}
	if !fill(token, r, nodes) {
		dropReport(r)
		return nil
	}
	return r
}

// usualNodes says which pages a report asks the kernel about. A forked child asks about none: there
// may be many, and their memory is where their parent's is.
func usualNodes() uintptr {
	if forked {
		return alloc.NodesNone
	}
	return alloc.NodesSampled
}

// fill fills in the report r. It reports false in a signal handler that interrupted the pool on its
// own thread.
func fill(token uintptr, r *stats.Report, nodes uintptr) bool {
	if !alloc.Fill(token, r, tierMap.Nodes, nodes) {
		return false
	}
	r.Pid = uint64(raw.Pid())
	r.StartUnixNs = startUnix
	r.UptimeNs = raw.Clock(raw.ClockMono) - startMono
	setProgram()
	r.SetProgram(program.Addr(), program.Len())
	r.Policy = stats.Policy{DefaultHint: uint64(config.InForce.DefaultHint),
		OnSoftcap: uint64(config.InForce.OnSoftcap),
		OnHardcap: uint64(config.InForce.OnHardcap), Model: uint64(config.InForce.Model),
		Rules: uint64(config.InForce.Rules.Count)}
	if group.On() {
		r.Policy.Grouped = 1
		r.Policy.Group.SetName(config.GroupName(&config.InForce.GroupFile))
		r.Policy.Group.Min = group.Floor()
	}
	if config.InForce.ThrottleSleep {
		r.Policy.Throttle = 1
	}
	if !tierMap.Simulated {
		r.Backend = stats.BackendNuma
	}
	tiers.Fill(r)
	wait := MayWait(token)
	r.DeviceCount = cudahook.Report(token, wait, &r.Devices)
	r.ShareCount = manager.Report(token, wait, &r.Shares)
	return true
}

func dropReport(r *stats.Report) { raw.Unmap(uintptr(unsafe.Pointer(r)), reportSize) }

// FreeBlocks writes two words at out for each of up to n size classes that has free blocks: the
// size of a block in bytes, and how many more of them the pages of the class have room for. It
// returns the number of classes.
func FreeBlocks(token, out, n uintptr) (classes uintptr) {
	r := newReport(token, alloc.NodesNone)
	if r == nil {
		return 0
	}
	for i := range r.Heap.SizeClasses {
		c := &r.Heap.SizeClasses[i]
		if c.Size == 0 || classes == n {
			break
		}
		if blocks := c.BytesPages / c.Size; blocks > c.BlocksLive {
			at := out + classes*2*unsafe.Sizeof(out)
			raw.Store(at, uintptr(c.Size))
			raw.Store(at+unsafe.Sizeof(out), uintptr(blocks-c.BlocksLive))
			classes++
		}
	}
	dropReport(r)
	return classes
}

// Stats fills the C structure at out (ta_stats in tieralloc.h) and returns an errno. The caller's
// structure has size bytes.
func Stats(token, out, size uintptr) (errno uintptr) {
	r := newReport(token, alloc.NodesNone)
	if r == nil {
		return uintptr(syscall.ENOMEM)
	}
	s := stats.Public{Size: uint64(unsafe.Sizeof(stats.Public{})), Version: stats.Version}
	s.From(r)
	from := uintptr(unsafe.Pointer(&s))
	for i := uintptr(0); i+8 <= size && i < unsafe.Sizeof(s); i += 8 {
		raw.Store(out+i, raw.Load(from+i))
	}
	dropReport(r)
	return 0
}
