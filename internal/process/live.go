package process

import (
	"tieralloc/alloc"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/stats/profile"
)

// livePath is TA_STATS_LIVE for this process.
var livePath config.Text

// openLive makes the live page, if one is asked for. After a failure it prints one line on standard
// error, except in a forked child, of which there may be many, and in a sandbox.
func openLive() {
	if !config.InForce.Live {
		return
	}
	if expand(&livePath, &config.InForce.StatsLive) != 0 {
		if !forked {
			config.ComplainLong("TA_STATS_LIVE", &config.InForce.StatsLive, "0")
			endIfStrict()
		}
		return
	}
	errno := stats.LiveOpen(livePath.Addr(), livePath.Len(), uint64(raw.Pid()), startUnix,
		program.Addr(), program.Len(), !forked && alloc.Watching)
	if errno == 0 || forked || raw.WritingRefused(errno) {
		return
	}
	var l raw.Line
	l.Text("tieralloc: cannot make TA_STATS_LIVE ")
	l.CStr(livePath.Addr())
	addError(&l, errno, errorName(errno))
	l.Emit(2)
}

// Pulse writes the profile and updates the live page, if they are due. The calling thread owns h.
func Pulse(h *alloc.Heap) {
	if profile.Due() {
		writeDue(h.Thread.Token(), h.Thread.Now)
	}
	if stats.LiveDue(h.Thread.Now) {
		update(h.Thread.Token())
	}
}

// update updates the live page. How long that takes is told in processor time: a thread that was
// stopped, or waited for the kernel, has cost nothing, so the next update is not late for it.
func update(token uintptr) {
	begun, used := raw.Clock(raw.ClockMono), raw.Clock(raw.ClockThread)
	r := stats.LiveBegin(begun)
	if r == nil {
		return
	}
	if fill(token, r, usualNodes()) {
		answer(token)
		answerSnapshot(token)
		answerOrder()
		stats.LiveCommit(begun + raw.Clock(raw.ClockThread) - used)
	} else {
		stats.LiveDrop(begun + raw.Clock(raw.ClockThread) - used)
	}
}

// closeLive writes the last figures. It removes the page unless the user chose its path.
func closeLive(token uintptr) {
	if !stats.LiveOn() {
		return
	}
	update(token)
	stats.LiveEnd(true, config.InForce.LiveIsDefault())
}
