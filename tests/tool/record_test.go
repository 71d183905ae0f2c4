package tool

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/testlib"
)

// systemPython is the distribution's: the first one in PATH may start another.
const systemPython = "/usr/bin/python3"

// recordLine is a line of a recording.
type recordLine struct {
	T     int64
	ID    int
	Begin *struct {
		Pid, Parent int
		Program     string
	}
	Set    map[string]int64
	End    string
	Status *int
}

// recordLines reads the whole lines of a recording that may still grow.
func recordLines(t *testing.T, path string) (lines []recordLine) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil
	}
	for text := bufio.NewReader(zip); ; {
		line, err := text.ReadString('\n')
		if err != nil {
			return lines
		}
		var l recordLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		lines = append(lines, l)
	}
}

// largestSet is the largest value that a figure was set to.
func largestSet(lines []recordLine, name string) (most int64) {
	for _, l := range lines {
		most = max(most, l.Set[name])
	}
	return most
}

// holds has 64 MiB until the first file appears, and less from then on. It starts a program before.
const holds = `
import os, subprocess, sys, time
subprocess.run(["perl", "-e", "my $x = 'a' x 30_000_000"])
print("ready", flush=True)
def wait(path):
    while not os.path.exists(path):
        time.sleep(0.02)
        x = [bytearray(4096) for _ in range(1000)]
held = bytearray(64 << 20)
wait(sys.argv[1])
del held
wait(sys.argv[2])
sys.exit(3)`

// TestRecordStep: the recording of a program has the step of 64 MiB and the child, and the exit
// status is the program's.
func TestRecordStep(t *testing.T) {
	testlib.Need(t, systemPython, "perl")
	dir := t.TempDir()
	file, freed, ended := filepath.Join(dir, "rec"), filepath.Join(dir, "1"), filepath.Join(dir, "2")
	cmd := start(t, quiet(), tool(t), "record", "-o", file, "--library", testlib.Lib(t), "--",
		systemPython, "-c", holds, freed, ended)
	testlib.Wait(t, "the step is recorded", cmd.Process, func() bool {
		return largestSet(recordLines(t, file), "live") >= 64<<20
	})
	put(t, freed)
	testlib.Wait(t, "the end of the step is recorded", cmd.Process, func() bool {
		last := int64(0)
		for _, l := range recordLines(t, file) {
			if v, ok := l.Set["live"]; ok && l.ID == 1 {
				last = v
			}
		}
		return last < 32<<20
	})
	put(t, ended)
	if status := statusOf(testlib.End(cmd)); status != 3 {
		t.Errorf("status %d, not 3", status)
	}
	lines := recordLines(t, file)
	programs, parents := map[string]int{}, map[int]bool{}
	for _, l := range lines {
		if l.Begin != nil {
			programs[l.Begin.Program] = l.Begin.Pid
			parents[l.Begin.Parent] = true
		}
	}
	if programs["perl"] == 0 || programs["python3"] == 0 || !parents[cmd.Process.Pid] {
		t.Errorf("programs %v, parents %v", programs, parents)
	}
	if n := largestSet(lines, "live"); n < 64<<20 || n > 80<<20 {
		t.Errorf("the largest live is %d", n)
	}
	if last := lines[len(lines)-1]; last.Status == nil || *last.Status != 3 {
		t.Errorf("the last line is %+v", last)
	}
	r := ctl(t, nil, "record", file)
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	says(t, r.Stdout, systemPython+" -c", "NORMAL", "perl", "exited")
	page, picture := filepath.Join(dir, "html"), filepath.Join(dir, "svg")
	for flag, path := range map[string]string{"--html": page, "--svg": picture} {
		if r := ctl(t, nil, "record", flag, path, file); r.Status != 0 || r.Stdout != "" {
			t.Errorf("%s: %+v", flag, r)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "perl") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestRecordOld: what is live by the figures of a process that sleeps is recorded as old. What is
// live at its end is not.
func TestRecordOld(t *testing.T) {
	testlib.Need(t, "perl")
	file := filepath.Join(t.TempDir(), "rec")
	perl := start(t, preloaded(t, "TA_STATS_LIVE="+t.TempDir()+"/%p"), "perl", "-e", atRest)
	cmd := exec.Command(tool(t), "record", "-q", "-o", file, fmt.Sprint(perl.Process.Pid))
	cmd.Env, cmd.Stderr = append(os.Environ(), quiet()...), os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	testlib.Wait(t, "old figures", cmd.Process, func() bool {
		return largestSet(recordLines(t, file), "live_old") >= 30_000_000
	})
	perl.Process.Kill()
	perl.Wait()
	testlib.End(cmd)
	last := int64(-1)
	for _, l := range recordLines(t, file) {
		if v, ok := l.Set["live_old"]; ok {
			last = v
		}
	}
	if last != 0 {
		t.Errorf("%d bytes are old after the end", last)
	}
	says(t, ctl(t, nil, "record", file).Stdout, "live, by figures over 1 s old")
}

// put makes an empty file.
func put(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// recordFolders are the folders of live pages that a recorder has left.
func recordFolders(p *os.Process) []string {
	list, _ := filepath.Glob(fmt.Sprintf("/dev/shm/tieralloc-record.%d.*", p.Pid))
	return list
}

// TestRecordSignals: a signal reaches the command, and the recording is complete. One that SIGKILL
// cuts off can be read.
func TestRecordSignals(t *testing.T) {
	testlib.Need(t, "perl")
	const waits = `$SIG{INT} = sub { exit 5 }; $| = 1; my $x = "a" x 9_000_000; print "ready\n";
		while (1) { my @y = map { "b" x 99 } 1..9999; select undef, undef, undef, 0.02 }`
	file := filepath.Join(t.TempDir(), "rec")
	cmd := start(t, quiet(), tool(t), "record", "-o", file, "--library", testlib.Lib(t), "--",
		"perl", "-e", waits)
	cmd.Process.Signal(syscall.SIGINT)
	if status := statusOf(testlib.End(cmd)); status != 5 {
		t.Errorf("status %d, not 5", status)
	}
	lines := recordLines(t, file)
	if last := lines[len(lines)-1]; last.Status == nil || *last.Status != 5 ||
		largestSet(lines, "peak") < 9_000_000 {
		t.Errorf("%+v", lines)
	}
	if left := recordFolders(cmd.Process); len(left) > 0 {
		t.Errorf("%q are left", left)
	}

	file = filepath.Join(t.TempDir(), "killed")
	cmd = start(t, quiet(), tool(t), "record", "-o", file, "--library", testlib.Lib(t), "--",
		"perl", "-e", waits)
	testlib.Wait(t, "a sample is in the file", cmd.Process, func() bool {
		return largestSet(recordLines(t, file), "live") > 0
	})
	cmd.Process.Kill()
	cmd.Wait()
	r := ctl(t, nil, "record", file)
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	says(t, r.Stdout, "the recording was cut off", "still running")
	for _, dir := range recordFolders(cmd.Process) {
		os.RemoveAll(dir)
	}
}

// TestRecordRunning: the recording of a running process has its child, and ends with both.
func TestRecordRunning(t *testing.T) {
	testlib.Need(t, "perl")
	const forks = `my $x = "a" x 30_000_000; my $child = fork; $| = 1; print "ready\n" if $child;
		while (1) { my @y = map { "b" x 99 } 1..9999; select undef, undef, undef, 0.02 }`
	perl := start(t, preloaded(t, "TA_STATS_LIVE="+t.TempDir()+"/%p"), "perl", "-e", forks)
	file := filepath.Join(t.TempDir(), "rec")
	pid := perl.Process.Pid
	done := make(chan testlib.Result)
	go func() { done <- ctl(t, nil, "record", "-o", file, strconv.Itoa(pid)) }()
	testlib.Wait(t, "both are in the file", perl.Process, func() bool {
		large := map[int]bool{}
		for _, l := range recordLines(t, file) {
			if l.Set["live"] >= 30_000_000 {
				large[l.ID] = true
			}
		}
		return len(large) == 2
	})
	syscall.Kill(-pid, syscall.SIGKILL)
	perl.Wait()
	r := <-done
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	says(t, squeeze(r.Stderr), strconv.Itoa(pid)+" perl before", "killed", "2 processes")
}

// TestRecordRefuses: wrong arguments are named, with what is accepted.
func TestRecordRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rec")
	put(t, file)
	for _, c := range []struct {
		args   []string
		status int
		words  string
	}{
		{nil, 2, "expected a command or processes to record with -o, or a recording to show"},
		{[]string{"a", "b"}, 2, "record a b: expected one recording to show"},
		{[]string{file}, 1, file + ": not a recording of tierallocctl record"},
		{[]string{"--html", "a", "--svg", "b", file}, 2, "expected one of them"},
		{[]string{"-o", file, "--svg", "b", "true"}, 2, "expected one of them"},
		{[]string{"-o", file, "--interval", "1ms", "true"}, 2, "--interval 1ms: expected a time"},
		{[]string{"-o", file, "1", "x"}, 2, "record x: expected the number of a process"},
		{[]string{"-o", file, "999999999"}, 1, "there is no process 999999999"},
		{[]string{"-o", file, "--", "no-such-program"}, 127, "no-such-program: command not found"},
		{[]string{"-o", "/no/such/file", "--", "true"}, 125, "/no/such/file"},
		{[]string{"-o", file, "--normal-hard", "x", "--", "true"}, 78, "--normal-hard"},
	} {
		r := ctl(t, nil, append([]string{"record"}, c.args...)...)
		if r.Status != c.status || !strings.Contains(r.Stderr, c.words) || r.Stdout != "" {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
}
