// Package process handles the life of the process for the data plane: boot, fork, the report and
// the live page. It is freestanding Go.
package process

import (
	"syscall"
	"unsafe"

	"tieralloc/alloc"
	"tieralloc/cudahook"
	"tieralloc/internal/config"
	"tieralloc/internal/group"
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
	Tracers uintptr // the numbers of tracers attached to the probes (profile.Tracers)
	Bell    uintptr // futex of the thread that waits to start the runtime
	Flags   *Flags  // all 0, filled in
}

// RuntimeLater is Flags.Runtime where small processes, which end soon, do without the Go runtime.
const RuntimeLater = 2

// Flags is what the configuration asks of C, which reads it in place. Each flag is 0 or 1, but
// Runtime may be RuntimeLater.
type Flags struct {
	_             raw.OffHeap
	Pass          uint32 // malloc and its like pass to libc
	Disabled      uint32 // ta_* does not serve either
	Runtime       uint32 // the control plane is wanted: the Go runtime starts (RuntimeLater)
	Reports       uint32 // something is written at exit: not after C's ta_report_last
	Rules         uint32 // there are rules
	RulesByCaller uint32 // a rule depends on who calls
	RulesByThread uint32 // a rule depends on the thread's name
	Throttled     uint32 // a tier is throttled
	Secure        uint32 // the heap is hardened
	Profiled      uint32 // the heap samples blocks
	Unusual       uint32 // Secure or Profiled: ta_malloc_unusual serves what the fast path cannot
	AlignedSlow   uint32 // Unusual or Rules: only the slow path serves aligned blocks
	CudaOff       uint16 // CUDA calls pass unchanged
	CudaStacks    uint16 // requests of the device heap tell their Python thread
	CudaAsync     uint32 // the heap serves cuMemAllocAsync
	Filtered      uint32 // C sets it when the program prepares a filter of system calls
}

const exitConfig = 78 // EX_CONFIG of sysexits.h

var (
	programPath uintptr     // the program's path, or 0
	programSet  bool        // whether program is set: it has a memory page of its own
	program     config.Text // the program's file name, without folders
	reports     bool        // a report is written at exit, to statsPath
	statsPath   config.Text // %p not yet replaced
	flags       *Flags
	startUnix   uint64
	startMono   uint64
	forked      bool // this process was forked from one that had the library
	reportPath  config.Text
	reportLock  raw.Lock
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
	if c := &config.InForce; c.Reports || c.Profiles || c.CUDA.Snapshots ||
		c.Log != config.LogOff || c.Background || c.SecureWarn != 0 {
		raw.KeepStderr()
	}
	if config.InForce.Secure {
		alloc.Harden(b.Random, uintptr(config.InForce.SecureWarn))
	}
	alloc.PurgeDelay = config.InForce.PurgeDelay
	configuredHint = config.InForce.DefaultHint
	alloc.DefaultHint = configuredHint
	startUnix = raw.Clock(raw.ClockReal)
	startMono = raw.Clock(raw.ClockMono)
	programPath = b.Program
	if envp != 0 {
		setProgram()
	}
	if config.InForce.Disable {
		b.Flags.Pass, b.Flags.Disabled, b.Flags.CudaOff = 1, 1, 1
		return
	}
	if config.InForce.Grouped && !joinGroup(&b.Flags.Filtered) {
		endIfStrict()
	}
	account := tierMap.Accounts()
	tiers.Setup(&config.InForce, &account, program.Addr())
	if group.On() {
		tiers.JoinGroup()
	}
	if (!config.InForce.SlowSwap || beginPaging()) &&
		config.InForce.OnSoftcap == config.SoftcapFollow {
		beginFollowing()
	}
	if config.InForce.Reports {
		reports = setPath(&statsPath, &config.InForce.StatsFile, "TA_STATS_FILE")
	}
	if config.InForce.Profiles {
		beginProfile(b)
	}
	openLive()
	stats.LogBell(b.Bell)
	b.Flags.set()
}

// endIfStrict ends the process after a complaint about a setting, if TA_STRICT asks for that.
func endIfStrict() {
	if config.InForce.Strict {
		raw.Sys(syscall.SYS_EXIT_GROUP, exitConfig, 0, 0, 0, 0, 0)
	}
}

// writes reports whether something other than the log is written at exit.
func writes() bool { return reports || alloc.Profiling || config.InForce.Live }

// flag returns 1 if on is true, else 0.
func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

// set sets the flags from the settings.
func (f *Flags) set() {
	f.Pass = flag(!config.InForce.Interpose)
	if config.InForce.Background || config.InForce.Log != config.LogOff {
		f.setRuntime()
	}
	flags = f
	f.Reports = flag(writes() || config.InForce.Log != config.LogOff)
	if config.InForce.CUDA.Enable && config.InForce.CUDA.Snapshots {
		config.InForce.CUDA.Snapshots = beginSnapshots()
		f.CudaStacks = uint16(flag(config.InForce.CUDA.Snapshots))
	}
	alloc.CountFromFork = f.Reports|f.Runtime != 0 || config.InForce.CUDA.Snapshots
	f.Rules = flag(tiers.RulesOn())
	f.RulesByCaller = flag(tiers.NeedsCaller())
	f.RulesByThread = flag(tiers.NeedsThread())
	f.Throttled = flag(tiers.AnyThrottled())
	f.Secure = flag(config.InForce.Secure)
	f.Profiled = flag(alloc.Profiling)
	f.Unusual = f.Secure | f.Profiled
	f.AlignedSlow = f.Unusual | f.Rules
	f.CudaOff = uint16(flag(!config.InForce.CUDA.Enable))
	f.CudaAsync = flag(config.InForce.CUDA.AsyncHeap)
	if config.InForce.CUDA.Enable && config.InForce.CUDA.Traces {
		if expand(&reportPath, &config.InForce.TraceFile) == 0 {
			cudahook.SetTrace(&reportPath)
		} else {
			config.ComplainLong("TA_CUDA_TRACE", &config.InForce.TraceFile, "no file")
			endIfStrict()
		}
	}
}

// setRuntime starts the log and sets f.Runtime. A log of errors and warnings is empty in most
// processes; one with more has the summary of each.
func (f *Flags) setRuntime() {
	if config.InForce.LogsFile && config.InForce.Log != config.LogOff {
		openLog()
	}
	if config.InForce.Background || config.InForce.Log != config.LogOff {
		f.Runtime = RuntimeLater
	}
	if config.InForce.Log > config.LogWarn {
		f.Runtime = 1
	}
	if config.InForce.Log != config.LogOff {
		stats.LogStart(config.InForce.Log)
	}
}

// openLog opens TA_LOG_FILE. After a failure the log goes to standard error, and one line says what
// is wrong. In a sandbox where no file can be opened for writing there is no log.
func openLog() {
	path := config.InForce.LogFile.Addr()
	if errno := stats.LogOpen(path); errno != 0 && !complain("TA_LOG_FILE", path, errno) {
		config.InForce.Log = config.LogOff
	}
}

// setProgram sets program. A process without settings waits with it until it writes a report.
func setProgram() {
	if programPath != 0 && !programSet {
		program.Set(raw.BaseName(programPath))
		programSet = true
	}
}

// setPath keeps a setting that names a file in path, and reports whether the file can be made. It
// makes a relative path absolute, because the program may change its folder.
func setPath(path, file *config.Text, name string) bool {
	if file.At(0) != '/' {
		n, errno := raw.Sys(syscall.SYS_GETCWD, reportPath.Addr(), config.PathMax, 0, 0, 0, 0)
		if errno == 0 && n > 1 && raw.LoadByte(reportPath.Addr()) == '/' {
			addEscaped(path, reportPath.Addr(), n-1)
			path.Byte('/')
		}
		reportPath.Reset()
	}
	if !path.Mem(file.Addr(), file.Len()) || expand(&reportPath, path) != 0 {
		config.ComplainLong(name, file, "no file")
		endIfStrict()
		return false
	}
	errno := pathError(path)
	if errno != 0 && complain(name, reportPath.Addr(), errno) {
		endIfStrict()
	}
	reportPath.Reset()
	return errno == 0
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

// ForkChild notes that the process is a forked child, which writes a report of its own. One that
// will write none, and whose counts go on from its parent's, does as its parent.
func ForkChild() {
	if group.On() {
		forkGroup()
	}
	if !alloc.CountFromFork {
		return
	}
	forked = true
	unserved = true
	alloc.Background = false
	if alloc.Following {
		tiers.FollowByAge() // the thread that follows is the parent's
	}
	tiers.ForkChild()
	stats.LogStop()
	startUnix = raw.Clock(raw.ClockReal)
	startMono = raw.Clock(raw.ClockMono)
	reportLock.Reset()
	profileLock.Reset()
	snapshotLock.Reset()
	forgetOrder()
	profilePid = raw.Pid()
	stats.LiveForked()
	if flags.Reports != 0 {
		openLive()
	}
}
