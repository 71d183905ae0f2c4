// Package process handles the life of the process for the data plane: boot, fork, the report and
// the live page. It is freestanding Go.
package process

import (
	"syscall"
	"unsafe"

	"tieralloc/alloc"
	"tieralloc/cudahook"
	"tieralloc/cudahook/manager"
	"tieralloc/internal/config"
	"tieralloc/internal/lockrank"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/stats/document"
	"tieralloc/tiers"
)

// BootArgs are the arguments of Boot, from C.
type BootArgs struct {
	_       raw.OffHeap
	Root    uintptr // the page map
	None    uintptr // the page that never has a block
	Envp    uintptr // the environment
	Secure  uintptr // AT_SECURE of the auxiliary vector
	Program uintptr // the program's path, or 0
	Token   uintptr // the calling thread's token
	Random  uintptr // 16 random bytes
	File    uintptr // a descriptor of the file of settings, or -errno without one
	Flags   *Flags  // all 0, filled in
}

// Flags is what the configuration asks of C, which reads it in place. Each flag is 0 or 1.
type Flags struct {
	_             raw.OffHeap
	Pass          uint32 // malloc and its like pass to libc
	Disabled      uint32 // ta_* does not serve either
	Runtime       uint32 // the control plane is wanted: the Go runtime starts
	Reports       uint32 // something is written at exit
	Rules         uint32 // there are rules
	RulesByLib    uint32 // a rule depends on the calling object
	RulesByThread uint32 // a rule depends on the thread's name
	Throttled     uint32 // a tier is throttled
	Secure        uint32 // the heap is hardened
	CudaOff       uint32 // CUDA calls pass unchanged
	Filtered      uint32 // C sets it when the program prepares a filter of system calls
}

const exitConfig = 78 // EX_CONFIG of sysexits.h

var (
	program    config.Text // the program's file name, without folders
	reports    bool        // a report is written at exit, to statsPath
	statsPath  config.Text // %p not yet replaced
	startUnix  uint64
	startMono  uint64
	forked     bool // this process was forked from one that had the library
	reportPath config.Text
	reportLock raw.Lock
)

// Boot reads the configuration and prepares the heap. It runs once, before any other call of the
// data plane. C passes an environment only if it contains a setting.
func Boot(arg uintptr) {
	if lockrank.On {
		rankLocks()
	}
	b := (*BootArgs)(raw.Ptr(arg))
	alloc.Boot(b.Root, b.None)
	alloc.SetFilterFlag(uintptr(unsafe.Pointer(&b.Flags.Filtered)))
	envp, bad := b.Envp, uintptr(0)
	if envp != 0 || int(b.File) >= 0 {
		envp, bad = config.Configure(b.File, envp, b.Program, b.Secure != 0)
	} else {
		config.Parse(&config.InForce, 0)
	}
	if !config.InForce.Disable {
		bad += placeTiers(envp)
	}
	if envp != b.Envp {
		config.Forget()
	}
	if bad > 0 {
		endIfStrict()
	}
	if c := &config.InForce; c.Reports || c.Log != config.LogOff || c.Background ||
		c.SecureWarn != 0 {
		raw.KeepStderr()
	}
	if config.InForce.Secure {
		alloc.Harden(b.Random, uintptr(config.InForce.SecureWarn))
	}
	alloc.PurgeDelay = config.InForce.PurgeDelay
	configuredHint = config.InForce.DefaultHint
	alloc.DefaultHint = configuredHint
	alloc.Background = config.InForce.Background
	startUnix = raw.Clock(raw.ClockReal)
	startMono = raw.Clock(raw.ClockMono)
	setProgram(b.Program)
	if config.InForce.Disable {
		b.Flags.Pass, b.Flags.Disabled, b.Flags.CudaOff = 1, 1, 1
		return
	}
	account := tierMap.Accounts()
	tiers.Setup(&config.InForce, &account, program.Addr())
	if config.InForce.Reports {
		setStatsPath()
	}
	openLive()
	b.Flags.set()
}

// endIfStrict ends the process after a complaint about a setting, if TA_STRICT asks for that.
func endIfStrict() {
	if config.InForce.Strict {
		raw.Sys(syscall.SYS_EXIT_GROUP, exitConfig, 0, 0, 0, 0, 0)
	}
}

// flag returns 1 if on is true, else 0.
func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

// set sets the flags from the settings.
func (f *Flags) set() {
	if config.InForce.Log != config.LogOff {
		stats.LogStart(config.InForce.Log)
	}
	f.Pass = flag(!config.InForce.Interpose)
	f.Runtime = flag(config.InForce.Log != config.LogOff || config.InForce.Background)
	f.Reports = flag(reports || config.InForce.Live ||
		config.InForce.Log != config.LogOff)
	f.Rules = flag(tiers.RulesOn())
	f.RulesByLib = flag(tiers.NeedsLib())
	f.RulesByThread = flag(tiers.NeedsThread())
	f.Throttled = flag(tiers.AnyThrottled())
	f.Secure = flag(config.InForce.Secure)
	f.CudaOff = flag(!config.InForce.CUDA.Enable)
	if config.InForce.CUDA.Enable && config.InForce.CUDA.Traces {
		if _, ok := config.Expand(&reportPath, &config.InForce.CUDA.Trace, raw.Pid(),
			&program, config.InForce.Rank); ok {
			cudahook.SetTrace(&reportPath)
		}
	}
}

func setProgram(path uintptr) {
	if path != 0 {
		program.Set(raw.BaseName(path))
	}
}

// setStatsPath keeps TA_STATS_FILE. It makes a relative path absolute, because the program may
// change its folder.
func setStatsPath() {
	file := &config.InForce.StatsFile
	if file.At(0) != '/' {
		n, errno := raw.Sys(syscall.SYS_GETCWD, reportPath.Addr(), config.PathMax, 0, 0, 0, 0)
		if errno == 0 && n > 1 && raw.LoadByte(reportPath.Addr()) == '/' {
			addEscaped(&statsPath, reportPath.Addr(), n-1)
			statsPath.Byte('/')
		}
		reportPath.Reset()
	}
	path, errno := file.Addr(), uintptr(syscall.ENAMETOOLONG)
	if statsPath.Mem(path, file.Len()) {
		path, errno = statsPath.Addr(), pathError(&statsPath)
	}
	reports = errno == 0
	if !reports && complain(path, errno) {
		endIfStrict()
	}
}

// pathError checks at boot whether a report can be made at path, because many programs close
// standard error before the report is written. It does not check a name with a % in it.
func pathError(path *config.Text) (errno uintptr) {
	name, _ := raw.BaseName(path.Addr())
	n := name - path.Addr()
	if n == 0 {
		return uintptr(syscall.ENOENT) // the working directory has been removed
	}
	if hasTemplate(path.Addr(), n) {
		return 0
	}
	dir, errno := raw.OpenFolder(path.Addr(), n)
	if errno != 0 {
		return errno
	}
	const writeAndSearch = 2 | 1 // W_OK | X_OK
	_, errno = raw.Sys(syscall.SYS_FACCESSAT, dir, raw.Bytes(".\x00"), writeAndSearch, 0, 0, 0)
	if errno == 0 && !hasTemplate(name, path.Len()-n) {
		errno = document.Replaceable(dir, name)
	}
	raw.Sys(syscall.SYS_CLOSE, dir, 0, 0, 0, 0, 0)
	if errno == uintptr(syscall.ENOSYS) || errno == uintptr(syscall.EPERM) {
		return 0 // a filter of system calls refuses the check, but may allow the file
	}
	return errno
}

// hasTemplate reports whether there is a % in the n bytes at text.
func hasTemplate(text, n uintptr) bool {
	for i := uintptr(0); i < n; i++ {
		if raw.LoadByte(text+i) == '%' {
			return true
		}
	}
	return false
}

// addEscaped appends n bytes to a template, escaped so that it stands for them.
func addEscaped(t *config.Text, addr, n uintptr) {
	for i := uintptr(0); i < n; i++ {
		c := raw.LoadByte(addr + i)
		t.Byte(c)
		if c == '%' {
			t.Byte(c)
		}
	}
}

// ForkChild notes that the process is a forked child, which writes a report of its own.
func ForkChild() {
	forked = true
	alloc.Background = false
	tiers.ForkChild()
	stats.LogStop()
	startUnix = raw.Clock(raw.ClockReal)
	startMono = raw.Clock(raw.ClockMono)
	reportLock.Reset()
	stats.LiveForked()
	openLive()
}

// Report writes the statistics file, if one is asked for, and ends the log. After a failure it
// prints one line on standard error.
func Report(token uintptr) {
	writeReport(token)
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
	return !alloc.Holds(token) && !cudahook.Holds(token) && !manager.Holds(token)
}

func writeReport(token uintptr) {
	if !reports || !reportLock.TakeIf(token, MayWait(token)) {
		return
	}
	hasPid, ok := config.Expand(&reportPath, &statsPath, raw.Pid(), &program, config.InForce.Rank)
	if ok && forked && !hasPid {
		ok = reportPath.Byte('.') && reportPath.Dec(uint64(raw.Pid()))
	}
	if ok {
		write(token, &reportPath)
	}
	reportLock.Release()
}

func write(token uintptr, path *config.Text) {
	if errno := WriteStats(token, path.Addr(), path.Len()); errno != 0 {
		stats.Put1(config.LogWarn, stats.EventReport, errno, 0)
		complain(path.Addr(), errno)
	}
}

// WriteStats writes a report to the file whose name is the n bytes at path, and
// returns an errno.
func WriteStats(token, path, n uintptr) (errno uintptr) {
	r := newReport(token, usualNodes())
	if r == nil {
		return uintptr(syscall.EAGAIN)
	}
	errno = document.WriteFile(path, n, r)
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
	need = document.JSON(buf, n, r)
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
	r.SetProgram(program.Addr(), program.Len())
	r.Policy = stats.Policy{DefaultHint: uint64(config.InForce.DefaultHint),
		OnSoftcap: uint64(config.InForce.OnSoftcap),
		OnHardcap: uint64(config.InForce.OnHardcap), Model: uint64(config.InForce.Model),
		Rules: uint64(config.InForce.Rules.Count)}
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
