package process

import (
	"sync/atomic"
	"syscall"

	"tieralloc/cudahook"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/stats/document"
)

// Snapshots of the devices (TA_CUDA_SNAPSHOT). The file shows the last refused request, or one
// shortly before it. One on request has a name of its own, so that it does not replace that.

var (
	snapshotPath  config.Text // TA_CUDA_SNAPSHOT, %p not yet replaced
	snapshotFile  config.Text // the same for this process
	snapshotLock  raw.Lock    // of snapshotFile and its writing
	nextSnapshot  uint64      // of a refused request: not before this time
	snapshotFails bool        // the user knows
)

const (
	// A program may ask for more than there is all the time: a fiftieth of one thread's time.
	snapshotShare = 50
	// The heaps may grow between the measuring and the writing.
	snapshotRoom  = 64 << 10
	snapshotTries = 4
	askedSuffix   = ".asked"
)

// beginSnapshots keeps where snapshots go, and reports whether there are any.
func beginSnapshots() bool {
	return setPath(&snapshotPath, &config.InForce.SnapshotFile, "TA_CUDA_SNAPSHOT")
}

// Refused writes the snapshot of a refused request. After a failure it prints one line, the first
// time. Precondition: the thread holds no lock of the data plane.
func Refused(token uintptr) {
	if raw.Clock(raw.ClockMono) < atomic.LoadUint64(&nextSnapshot) || !MayWait(token) ||
		!snapshotLock.Try(token) {
		cudahook.SnapshotTaken()
		return
	}
	begin := raw.Clock(raw.ClockMono)
	cudahook.SnapshotTaken()
	errno := expand(&snapshotFile, &snapshotPath)
	if errno == 0 {
		errno = putSnapshot(token)
	}
	if errno != 0 && errno != uintptr(syscall.EAGAIN) && !snapshotFails {
		snapshotFails = true
		failed("TA_CUDA_SNAPSHOT", &snapshotFile, errno)
	}
	end := raw.Clock(raw.ClockMono)
	atomic.StoreUint64(&nextSnapshot, end+(end-min(begin, end))*snapshotShare)
	snapshotLock.Release()
}

// answerSnapshot writes a snapshot if a reader of the live page has asked for it. If that cannot be
// done now, the next update of the page does it.
//
// Precondition: as for stats.LiveAsked.
func answerSnapshot(token uintptr) {
	asked, open := stats.LiveAsked(stats.AskSnapshot)
	if !open {
		return
	}
	errno := uintptr(0)
	switch {
	case !config.InForce.CUDA.Snapshots || !config.InForce.CUDA.Enable:
		errno = uintptr(syscall.ENODATA)
	case !cudahook.InUse():
		errno = uintptr(syscall.ENODEV)
	}
	if errno != 0 {
		stats.LiveAnswer(stats.AskSnapshot, asked, errno, 0, 0)
		return
	}
	if !MayWait(token) || !snapshotLock.Try(token) {
		return
	}
	errno = expand(&snapshotFile, &snapshotPath)
	if errno == 0 && !snapshotFile.Mem(raw.Bytes(askedSuffix), uintptr(len(askedSuffix))) {
		errno = uintptr(syscall.ENAMETOOLONG)
	}
	if errno == 0 {
		errno = putSnapshot(token)
	}
	if errno != uintptr(syscall.EAGAIN) {
		stats.LiveAnswer(stats.AskSnapshot, asked, errno, snapshotFile.Addr(), snapshotFile.Len())
	}
	snapshotLock.Release()
}

// putSnapshot writes a snapshot to snapshotFile and returns an errno, EAGAIN if the thread cannot
// have one now. Precondition: the thread has snapshotLock.
func putSnapshot(token uintptr) (errno uintptr) {
	need := writeSnapshot(token, 0, 0)
	for range snapshotTries {
		if need == 0 {
			break
		}
		size := raw.RoundUp(need+need/8+snapshotRoom, raw.Page)
		text := raw.Map(size)
		if text == 0 {
			return uintptr(syscall.ENOMEM)
		}
		need = writeSnapshot(token, text, size)
		whole := need != 0 && need <= size
		if whole {
			errno = document.Write(snapshotFile.Addr(), snapshotFile.Len(), text, need)
		}
		raw.Unmap(text, size)
		if whole {
			return errno
		}
	}
	return uintptr(syscall.EAGAIN)
}

// writeSnapshot writes a whole file to buf, as cudahook.Snapshot does.
func writeSnapshot(token, buf, n uintptr) (size uintptr) {
	var l raw.Line
	l.Text("tieralloc snapshot 2 ")
	l.Dec(uint64(raw.Pid()))
	l.Text(" ")
	l.Dec(raw.Clock(raw.ClockMono))
	l.Text(" ")
	l.Dec(raw.Clock(raw.ClockReal))
	size = l.Copy(buf, 0, n)
	body := cudahook.Snapshot(token, buf+min(size, n), n-min(size, n))
	if body == 0 {
		return 0
	}
	size += body
	l.Clear()
	l.Text("end")
	return l.Copy(buf, size, n)
}
