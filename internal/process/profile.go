package process

import (
	"syscall"
	"unsafe"

	"tieralloc/alloc"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/stats/document"
	"tieralloc/stats/profile"
)

// profilePath is TA_PROFILE, %p not yet replaced.
var profilePath config.Text

// beginProfile has the heap sample blocks, if a profile can be written. random is the address of 8
// random bytes.
func beginProfile(random uintptr) {
	if config.InForce.Secure {
		var l raw.Line
		l.Text("tieralloc: TA_PROFILE has no effect with TA_SECURE=1")
		l.Tell()
		return
	}
	if !setPath(&profilePath, &config.InForce.ProfileFile, "TA_PROFILE") {
		return
	}
	alloc.Profiling = profile.Start(config.InForce.ProfileRate, startMono, uint64(raw.Load(random)))
	if !alloc.Profiling {
		complain("TA_PROFILE", profilePath.Addr(), uintptr(syscall.ENOMEM))
		return
	}
	if config.InForce.ProfileHeat && !alloc.Watching {
		beginWatching()
	}
}

// beginWatching has the control plane measure heat for the profile.
func beginWatching() {
	alloc.Watching = true
	alloc.Background, config.InForce.Background = true, true
	if tierMap.Simulated {
		alloc.SetApart(tierMap.Nodes)
	}
}

// writeProfile writes the profile, if there is one.
func writeProfile(token uintptr) {
	if !profile.On() || !reportLock.TakeIf(token, MayWait(token)) {
		return
	}
	if expand(&profilePath) {
		if errno := putProfile(token); errno != 0 {
			failed("TA_PROFILE", errno)
		}
	}
	reportLock.Release()
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

// putProfile writes the profile to reportPath and returns an errno.
func putProfile(token uintptr) (errno uintptr) {
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
	errno = document.Write(reportPath.Addr(), reportPath.Len(), text, n)
	raw.Unmap(text, size)
	return errno
}
