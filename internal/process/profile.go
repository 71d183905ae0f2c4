package process

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/alloc"
	"tieralloc/cudahook"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/stats/document"
	"tieralloc/stats/profile"
)

var (
	profilePath  config.Text // TA_PROFILE, %p not yet replaced
	profileFile  config.Text // the same for this process
	profileLock  raw.Lock    // of profileFile and its writing
	profilePid   uintptr     // process whose profile it is
	nextProfile  uint64      // TA_PROFILE_EVERY: not before this time
	writingFails bool        // TA_PROFILE_EVERY: the user knows
)

// profileShare bounds what TA_PROFILE_EVERY costs: a fiftieth of one thread's time.
const profileShare = 50

// beginProfile has the heap sample blocks, if a profile can be written.
func beginProfile(b *BootArgs) {
	if config.InForce.Secure {
		var l raw.Line
		l.Text("tieralloc: TA_PROFILE has no effect with TA_SECURE=1")
		l.Tell()
		return
	}
	if !setPath(&profilePath, &config.InForce.ProfileFile, "TA_PROFILE") {
		return
	}
	profilePid = raw.Pid()
	profile.Every = float64(config.InForce.ProfileEvery)
	rate := config.InForce.ProfileRate
	if rate == 0 {
		rate = config.AutoProfileRate
		alloc.Thinning = true
	}
	alloc.Profiling = profile.Start(rate, startMono,
		uint64(raw.Load(b.Random)), (*profile.Tracers)(raw.Ptr(b.Tracers)))
	if !alloc.Profiling {
		expand(&profileFile, &profilePath)
		complain("TA_PROFILE", profileFile.Addr(), uintptr(syscall.ENOMEM))
		return
	}
	cudahook.StartSampling()
	if config.InForce.ProfileHeat && !alloc.Watching {
		beginWatching()
	}
}

// beginWatching has the control plane measure heat for the profile.
func beginWatching() {
	alloc.Watching = true
	config.InForce.Background = true
	alloc.SetApart(tierMap.Nodes)
}

// writeProfile writes the profile at exit, if there is one.
func writeProfile(token uintptr) {
	if !profile.On() || !profileLock.TakeIf(token, MayWait(token)) {
		return
	}
	if errno := putProfile(token); errno != 0 {
		failed("TA_PROFILE", &profileFile, errno)
	}
	profileLock.Release()
}

// answer writes the profile if a reader of the live page has asked for it. If that cannot be done
// now, the next update of the page does it.
//
// Precondition: as for stats.LiveAsked.
func answer(token uintptr) {
	asked, open := stats.LiveAsked(stats.AskProfile)
	if !open {
		return
	}
	if !profile.On() {
		stats.LiveAnswer(stats.AskProfile, asked, uintptr(syscall.ENODATA), 0, 0)
		return
	}
	if !MayWait(token) || !profileLock.Try(token) {
		return
	}
	errno := putProfile(token)
	if errno != uintptr(syscall.EAGAIN) {
		stats.LiveAnswer(stats.AskProfile, asked, errno, profileFile.Addr(), profileFile.Len())
	}
	profileLock.Release()
}

// writeDue writes the profile for TA_PROFILE_EVERY, if its process is this one: a vfork child has
// its parent's memory. After a failure it prints one line, the first time. The last one has been
// written where C has cleared the flag (ta_report_last).
func writeDue(token uintptr, now uint64) {
	if flags.Reports == 0 || !profile.On() || now < atomic.LoadUint64(&nextProfile) ||
		raw.Pid() != profilePid || !MayWait(token) || !profileLock.Try(token) {
		return
	}
	begin := raw.Clock(raw.ClockMono)
	errno := putProfile(token)
	if errno != 0 && errno != uintptr(syscall.EAGAIN) && !writingFails {
		writingFails = true
		failed("TA_PROFILE", &profileFile, errno)
	}
	end := raw.Clock(raw.ClockMono)
	atomic.StoreUint64(&nextProfile, end+(end-min(begin, end))*profileShare)
	profileLock.Release()
}

const sitesSize = (unsafe.Sizeof(stats.Sites{}) + raw.Page - 1) &^ (raw.Page - 1)

// newSites returns the sites for a report, or nil if there is no profile, no memory, or the thread
// cannot have the profile.
func newSites(token uintptr) *stats.Sites {
	if !profile.On() {
		return nil
	}
	s := (*stats.Sites)(raw.Ptr(raw.Map(sitesSize)))
	if s == nil {
		return nil
	}
	if !profile.Hold(token, MayWait(token)) {
		dropSites(s)
		return nil
	}
	profile.Settle(raw.Clock(raw.ClockMono))
	profile.Top(s)
	profile.Release()
	return s
}

func dropSites(s *stats.Sites) {
	if s != nil {
		raw.Unmap(uintptr(unsafe.Pointer(s)), sitesSize)
	}
}

// putProfile writes the profile to profileFile, which it sets, and returns an errno, EAGAIN if the
// thread cannot have the profile. Precondition: the thread has profileLock.
func putProfile(token uintptr) (errno uintptr) {
	if errno = expand(&profileFile, &profilePath); errno != 0 {
		return errno
	}
	setProgram()
	a := profile.About{Program: programPath, Pid: uint64(raw.Pid()), Now: raw.Clock(raw.ClockMono),
		Unix: raw.Clock(raw.ClockReal)}
	if programPath != 0 {
		for raw.LoadByte(programPath+a.ProgramLen) != 0 {
			a.ProgramLen++
		}
	}
	if !profile.Hold(token, MayWait(token)) {
		return uintptr(syscall.EAGAIN)
	}
	profile.Settle(a.Now)
	profile.Written()
	n := profile.Write(0, 0, &a)
	size := raw.RoundUp(n, raw.Page)
	text := raw.Map(size)
	if text != 0 {
		profile.Write(text, size, &a)
	}
	profile.Release()
	if text == 0 {
		return uintptr(syscall.ENOMEM)
	}
	errno = document.Write(profileFile.Addr(), profileFile.Len(), text, n)
	raw.Unmap(text, size)
	return errno
}
