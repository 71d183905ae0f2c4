package tool

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// redis starts a preloaded redis-server on a port of its own and returns its process.
func redis(t *testing.T, env ...string) (cmd *exec.Cmd, port string) {
	t.Helper()
	testlib.Need(t, "redis-server", "redis-cli", "redis-benchmark")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
		"--appendonly", "no", "--dir", t.TempDir())
	cmd.Env = append(append(os.Environ(), quiet()...), preloaded(t, env...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		// The page of a killed process stays: this one is the test's own.
		pages, _ := filepath.Glob(fmt.Sprintf("/dev/shm/tieralloc.%d", cmd.Process.Pid))
		for _, p := range pages {
			os.Remove(p)
		}
	})
	testlib.Wait(t, "redis answers", cmd.Process, func() bool {
		out, _ := exec.Command("redis-cli", "-p", port, "ping").Output()
		return string(out) == "PONG\n"
	})
	return cmd, port
}

// load makes redis allocate for a moment.
func load(t *testing.T, port string) {
	t.Helper()
	r := testlib.Run(t, testlib.Cmd{Args: []string{"redis-benchmark", "-p", port, "-q", "-n",
		"30000", "-t", "set", "-d", "2000", "-r", "100000"}})
	if r.Status != 0 {
		t.Fatalf("%+v", r)
	}
}

// TestRedis looks at a running server, and at what is left when it was killed.
func TestRedis(t *testing.T) {
	cmd, port := redis(t, "TA_STATS_LIVE=1", "TA_RULES=size>=1500:cold", "TA_SLOW_HARD=900M",
		"TA_NORMAL_SOFT=800M")
	pid := strconv.Itoa(cmd.Process.Pid)
	load(t, port)
	var last report
	testlib.Wait(t, "the figures", cmd.Process, func() bool {
		load(t, port)
		r := ctl(t, nil, "stats", pid, "--json")
		if r.Status != 0 {
			return false
		}
		last = valid(t, []byte(r.Stdout))
		return last.Tiers["slow"].AllocCalls > 10000
	})
	if last.Pid != cmd.Process.Pid || last.Program != "redis-server" ||
		last.Tiers["slow"].BytesCurrent < 20<<20 {
		t.Errorf("%+v", last)
	}
	r := ctl(t, nil, "stats", pid)
	says(t, squeeze(r.Stdout), "running; figures from", "redis-server (process "+pid+")",
		"hard cap - - 900 MiB", "soft cap - 800 MiB -", "malloc")
	if e := listed(t, nil)[cmd.Process.Pid]; e.State != "running" || e.Program != "redis-server" {
		t.Errorf("%+v", e)
	}

	busy := exec.Command("redis-benchmark", "-p", port, "-q", "-l", "-t", "set", "-d", "2000", "-r",
		"100000")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		busy.Process.Kill()
		busy.Wait()
	}()
	testlib.Wait(t, "top sees the load", cmd.Process, func() bool {
		r := ctl(t, nil, "top", "--once", "--interval", "500ms")
		line := lineOf(r.Stdout, pid)
		return strings.Contains(line, "redis-server running") &&
			!strings.Contains(line, " 0 0 B/s ") && strings.Contains(line, "/s")
	})
	busy.Process.Kill()

	cmd.Process.Kill()
	cmd.Wait()
	r = ctl(t, nil, "stats", pid)
	if r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	says(t, squeeze(r.Stdout), "killed: these are the last figures",
		"redis-server (process "+pid+")", "hard cap - - 900 MiB")
	final := valid(t, []byte(ctl(t, nil, "stats", pid, "--json").Stdout))
	if final.Tiers["slow"].AllocCalls < last.Tiers["slow"].AllocCalls {
		t.Errorf("after the end %d allocations, before it %d", final.Tiers["slow"].AllocCalls,
			last.Tiers["slow"].AllocCalls)
	}
	r = ctl(t, nil, "top", "--once", "--interval", "100ms")
	says(t, lineOf(r.Stdout, pid), "redis-server killed")
}

// lineOf is the line of a process in a picture of top, with single blanks.
func lineOf(picture, pid string) string {
	for line := range strings.Lines(squeeze(picture)) {
		if strings.HasPrefix(line, pid+" ") {
			return line
		}
	}
	return ""
}
