package process

import (
	"os"
	"syscall"
	"testing"

	"tieralloc/alloc"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// TestControlStopOnce: the control plane ends once, and one line says why.
func TestControlStopOnce(t *testing.T) {
	said := standardError(t, func() {
		ControlStop(StopThread)
		ControlStop(StopFailure)
	})
	if said != "tieralloc: no thread for TA_LOG or TA_BACKGROUND; they end here\n" {
		t.Errorf("it says %q", said)
	}
}

// standardError returns what is written to standard error meanwhile.
func standardError(t *testing.T, during func()) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	old, err := syscall.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Dup2(int(file.Fd()), 2); err != nil {
		t.Fatal(err)
	}
	raw.KeepStderr()
	during()
	if err := syscall.Dup2(old, 2); err != nil {
		t.Fatal(err)
	}
	syscall.Close(old)
	raw.KeepStderr()
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// noFlags are those of a process that leaves nothing at exit.
var noFlags Flags

// TestControlAgain: a forked child has spans move by age, unless it gets a control plane of its
// own, which follows what is used.
func TestControlAgain(t *testing.T) {
	alloc.CountFromFork, alloc.Following, flags = true, true, &noFlags
	defer func() {
		alloc.CountFromFork, alloc.Following, forked, unserved = false, false, false, false
		flags = nil
	}()
	ForkChild()
	if !tiers.Migrating() {
		t.Error("a child does not move by age")
	}
	ControlAgain()
	if tiers.Migrating() {
		t.Error("with a control plane it moves by age")
	}
}
