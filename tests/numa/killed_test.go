package numa

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// standsIn is a QEMU that notes its process and does nothing.
const standsIn = `#!/bin/sh
echo $$ >"$NOTE.new" && mv "$NOTE.new" "$NOTE" && exec sleep 3600
`

// TestGuestKilled: a guest ends when the test that runs it is killed, as where go test's time is
// up.
func TestGuestKilled(t *testing.T) {
	if os.Getenv("NOTE") != "" { // in the process that is to be killed
		g := guest{nodes: "64/1"}
		g.run(t)
		return
	}
	testlib.Need(t, "qemu-system-x86_64", "busybox", "cpio", "setpriv")
	dir := t.TempDir()
	note := filepath.Join(dir, "note")
	if err := os.WriteFile(filepath.Join(dir, "qemu-system-x86_64"), []byte(standsIn),
		0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestGuestKilled$")
	cmd.Env = append(os.Environ(), "NOTE="+note, "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir,
		"TA_VM_KERNEL=/dev/null")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	pid := 0
	testlib.Wait(t, "the guest", cmd.Process, func() bool {
		text, _ := os.ReadFile(note)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid != 0
	})
	cmd.Process.Kill()
	_ = cmd.Wait()
	// QEMU's parent is another process, or nobody, who may leave it a zombie.
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(until) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d is left: %s", pid, stat)
		}
	}
}
