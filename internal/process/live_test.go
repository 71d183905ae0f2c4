package process

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"tieralloc/alloc"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// TestUpdateWaits: an update of the live page that has waited for another thread, here one that
// forks, is followed by the next no later than one that has not.
func TestUpdateWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	if errno := stats.LiveOpen(raw.Bytes(path), uintptr(len(path)), uint64(os.Getpid()), 1,
		raw.Bytes("test"), 4, false); errno != 0 {
		t.Fatal(errno)
	}
	defer stats.LiveForked()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	held, done := alloc.ForkPrepare(8), make(chan uint64)
	go func() {
		runtime.LockOSThread()
		update(16)
		done <- raw.Clock(raw.ClockMono)
	}()
	time.Sleep(300 * time.Millisecond)
	select {
	case <-done:
		t.Error("it did not wait")
		return
	default:
	}
	alloc.ForkParent(held)
	if end := <-done; !stats.LiveDue(end + 1e9) {
		t.Error("the next update is late")
	}
}
