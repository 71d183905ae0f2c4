package cuda

import (
	"bufio"
	"fmt"
	"io"
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

// ordered is a program whose regions the tool has sleep and wake.
type ordered struct {
	t    *testing.T
	pid  string
	env  []string // the tool's
	stop *os.Process
	in   io.Writer
	out  *bufio.Reader
}

// startOrdered starts regionorder.py. env adds to a live page and the control plane.
func startOrdered(t *testing.T, mode string, env ...string) *ordered {
	t.Helper()
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		testlib.Lacks(t, python)
	}
	page := "TA_STATS_LIVE=" + t.TempDir() + "/%p.page"
	c := command(true, append([]string{page, "TA_BACKGROUND=1",
		"PYTHONPATH=" + filepath.Join("..", "..", "python")}, env...))
	cmd := exec.Command(python, "testdata/regionorder.py", mode)
	cmd.Env = append(append(os.Environ(), c.Env...), "LD_PRELOAD="+testlib.Lib(t))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p := &ordered{t, strconv.Itoa(cmd.Process.Pid), []string{page}, cmd.Process, in,
		bufio.NewReader(out)}
	p.reads("ready")
	return p
}

// says sends the program a word and checks its answer.
func (p *ordered) says(word, answer string) {
	p.t.Helper()
	fmt.Fprintln(p.in, word)
	p.reads(answer)
}

func (p *ordered) reads(want string) {
	p.t.Helper()
	if line, err := p.out.ReadString('\n'); strings.TrimSpace(line) != want {
		p.t.Fatalf("%q, %v instead of %q", line, err, want)
	}
}

// gpu runs the tool's command on the process.
func (p *ordered) gpu(args ...string) testlib.Result {
	p.t.Helper()
	return testlib.Run(p.t, testlib.Cmd{Env: p.env,
		Args: append([]string{testlib.Tool(p.t), "gpu"}, append(args, p.pid)...)})
}

// obeys checks that the command succeeds and prints the lines that begin so.
func (p *ordered) obeys(args []string, lines ...string) {
	p.t.Helper()
	r := p.gpu(args...)
	got := strings.Split(strings.TrimSuffix(r.Stdout, "\n"), "\n")
	if r.Status != 0 || r.Stderr != "" || len(got) != len(lines) {
		p.t.Fatalf("%q: %+v", args, r)
	}
	for i := range lines {
		if !strings.HasPrefix(got[i], lines[i]) {
			p.t.Errorf("%q: %q instead of %q…", args, got[i], lines[i])
		}
	}
}

// refuses checks that the command fails with one line that has all the words.
func (p *ordered) refuses(args []string, words ...string) {
	p.t.Helper()
	r := p.gpu(args...)
	if r.Status != 1 || strings.Count(r.Stderr, "\n") != 1 {
		p.t.Errorf("%q: %+v", args, r)
	}
	for _, w := range words {
		if !strings.Contains(r.Stderr, w) {
			p.t.Errorf("%q: %q is missing in %q", args, w, r.Stderr)
		}
	}
}

// TestOrderedRegions: an idle process gives the memory of its regions back when it is told to, and
// takes it again with its contents. It waits for work in flight.
func TestOrderedRegions(t *testing.T) {
	p := startOrdered(t, "regions")
	p.says("used", "130")
	p.says("launch", "launched")
	p.obeys([]string{"sleep"}, "device 0, region kv: 40 MiB given back to the driver in ",
		"device 0, region weights: 60 MiB given back to the driver in ")
	p.says("used", "30")
	p.obeys([]string{"sleep", "--keep", "--device", "0"}, "device 0, region kv: sleeps already",
		"device 0, region weights: sleeps already")
	p.obeys([]string{"wake", "--tag", "kv"}, "device 0, region kv: 40 MiB of memory again in ")
	p.says("used", "70")
	p.obeys([]string{"wake"}, "device 0, region kv: is awake already",
		"device 0, region weights: 60 MiB of memory again in ")
	p.says("contents", "kept")
	p.obeys([]string{"sleep", "--tag", "weights", "--discard"},
		"device 0, region weights: 60 MiB given back")
	p.says("used", "70")
	p.says("fill", "filled")
	p.refuses([]string{"wake"}, "process "+p.pid+": device 0, region weights: ",
		"the device has no memory", "sleeps on")
	p.says("empty", "emptied")
	p.obeys([]string{"wake", "--tag", "weights"}, "device 0, region weights: 60 MiB of memory")
	p.says("contents", "lost")
}

// TestOrderRefused: why a process does not carry out an order, and mistakes.
func TestOrderRefused(t *testing.T) {
	p := startOrdered(t, "regions")
	p.refuses([]string{"sleep", "--tag", "none"}, "process "+p.pid+" has no region none: ")
	p.refuses([]string{"wake", "--device", "3"}, "process "+p.pid+" has no region on device 3")
	for _, args := range [][]string{{"sleep", "--tag", "sixteen bytes .."}, {"wake", "--tag="},
		{"sleep", "--device=-1"}, {"wake", "--wait=-1s"}, {"sleep", "--keep", "--discard"}} {
		if r := p.gpu(args...); r.Status != 2 || r.Stdout != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	p.says("used", "130")

	startOrdered(t, "none").refuses([]string{"sleep"}, " has no region: ")
	startOrdered(t, "").refuses([]string{"sleep"}, "uses no CUDA device")
	startOrdered(t, "regions", "TA_STATS_LIVE=0").refuses([]string{"sleep"}, "no live page")
	p = startOrdered(t, "regions", "TA_BACKGROUND=0")
	fmt.Fprintln(p.in, "busy")
	p.refuses([]string{"sleep"}, "process "+p.pid+" has no thread", "TA_BACKGROUND=1")
	p = startOrdered(t, "regions", "TA_CUDA_EXPANDABLE=0")
	p.refuses([]string{"sleep", "--tag", "kv"}, "region kv: ", "TA_CUDA_EXPANDABLE=0")
	p.says("used", "130")
}

// TestOrderLate: a stopped process does not answer, and does not obey later.
func TestOrderLate(t *testing.T) {
	p := startOrdered(t, "regions")
	if err := p.stop.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.refuses([]string{"sleep", "--wait", "300ms"}, "has not answered in 300ms", "it is stopped")
	if err := p.stop.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	p.says("used", "130")
	p.obeys([]string{"sleep", "--tag", "kv"}, "device 0, region kv: 40 MiB given back")
	p.says("used", "90")
	if err := p.stop.Kill(); err != nil {
		t.Fatal(err)
	}
	p.refuses([]string{"wake", "--wait", "10s"}, p.pid)
}
