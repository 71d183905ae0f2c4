package heat

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
		if err := s.Start(newMemory(t, RegionBytes, unix.MADV_NOHUGEPAGE).regions); err != nil {
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
	if count, err := readWord(damonRoot + damonCount); err != nil || count != "1" {
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

// TestDamonClaimFails: a kernel that refuses a context is left without a kdamond.
func TestDamonClaimFails(t *testing.T) {
	was := damonRoot
	damonRoot = t.TempDir() + "/"
	defer func() { damonRoot = was }()
	count := filepath.Join(damonRoot, damonCount)
	if err := os.WriteFile(count, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&Damon{}).Start(nil); err == nil {
		t.Error("a kdamond without contexts can be had")
	}
	if got, err := readWord(count); err != nil || got != "0" {
		t.Errorf("%s is %q, %v", count, got, err)
	}
}

// TestDamonOfKernel: where the kernel itself has DAMON, no kdamond is made, and the error says so.
func TestDamonOfKernel(t *testing.T) {
	root, modules := damonRoot, moduleRoot
	defer func() { damonRoot, moduleRoot = root, modules }()
	damonRoot, moduleRoot = t.TempDir()+"/", t.TempDir()+"/"
	count := filepath.Join(damonRoot, damonCount)
	folder := filepath.Join(moduleRoot, "damon_stat", "parameters")
	if err := errors.Join(os.WriteFile(count, []byte("0"), 0o600),
		os.MkdirAll(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		enabled string
		taken   bool
	}{{"Y\n", true}, {"N\n", false}} {
		err := os.WriteFile(filepath.Join(folder, "enabled"), []byte(c.enabled), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		refused := (&Damon{}).claim()
		if says := refused != nil && strings.Contains(refused.Error(),
			"damon_stat/parameters/enabled is Y"); says != c.taken {
			t.Errorf("%q: %v", c.enabled, refused)
		}
		if got, err := readWord(count); err != nil || got != "0" {
			t.Errorf("%q: %s is %q, %v", c.enabled, count, got, err)
		}
	}
}

// TestDamonInterval: the interval follows what was touched, within the budget.
func TestDamonInterval(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		interval       time.Duration
		touched        float64
		spent, elapsed time.Duration
		want           time.Duration
	}{
		{100 * ms, 0.95, 0, time.Second, 100 * ms},
		{100 * ms, 0.05, 0, time.Second, 200 * ms},
		{200 * ms, 0.05, 0, time.Second, 200 * ms},
		{800 * ms, 0.05, 0, time.Second, 800 * ms},
		{100 * ms, 0.995, 0, time.Second, 50 * ms},
		{100 * ms, 0.995, 2 * ms, time.Second, 50 * ms},
		{100 * ms, 0.995, 3 * ms, time.Second, 100 * ms},
		{100 * ms, 0.995, 12 * ms, time.Second, 300 * ms},
		{2 * ms, 0.995, 0, time.Second, 2 * ms},
	} {
		if got := nextInterval(c.interval, c.touched, c.spent, c.elapsed); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestDamonUntilEnd: a sample sleeps until shortly before the end of an aggregation, whose wait in
// the kernel keeps a process that was killed.
func TestDamonUntilEnd(t *testing.T) {
	begun := time.Now()
	s := Damon{interval: time.Second, begun: begun}
	for _, c := range []struct{ passed, want time.Duration }{
		{0, 18}, {5, 13}, {18, 0}, {19, 0}, {20, 18}, {47, 11},
	} {
		got := s.untilEnd(begun.Add(c.passed * time.Second))
		if got != c.want*time.Second {
			t.Errorf("after %d s: %v, not %d s", c.passed, got, c.want)
		}
	}
}
