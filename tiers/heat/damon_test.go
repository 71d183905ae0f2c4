package heat

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const leavesDamon = "TA_TEST_LEAVES_DAMON"

// TestDamonAbandoned: a process that was killed leaves its kdamond behind, and the next takes it.
// The kernel needs a while to see that the process has ended.
func TestDamonAbandoned(t *testing.T) {
	s := &Damon{}
	if err := s.Probe(); err != nil {
		t.Skipf("not here: %v", err)
	}
	if os.Getenv(leavesDamon) != "" {
		if err := s.Start(newMemory(t, unix.MADV_NOHUGEPAGE).regions); err != nil {
			t.Fatal(err)
		}
		if err := (&Damon{}).Probe(); err == nil {
			t.Fatal("a kdamond that is in use can be taken")
		}
		os.Exit(0)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestDamonAbandoned$", "-test.v")
	cmd.Env = append(os.Environ(), leavesDamon+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if count, err := readWord(damonCount); err != nil || count != "1" {
		t.Fatalf("%s is %s after the process, %v", damonCount, count, err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := s.Probe()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
