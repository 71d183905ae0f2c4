package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// sample is one run. Memory is in KiB; steady is 0 where it is not told.
type sample struct {
	time, cpu    time.Duration
	system       time.Duration // the part of cpu that the kernel took
	faults       float64       // page faults
	peak, steady float64
	sum          string // must be the same for all
}

// limit is how long a program may run: many times what the slowest takes.
var limit = 90 * time.Second

// foreign are the prefixes of variables that would decide how an allocator works.
var foreign = []string{"TA_", "LD_", "MALLOC_", "MIMALLOC_", "TCMALLOC_", "GLIBC_TUNABLES=",
	"PYTHON", "GIT_"}

// environ is the environment for all contenders.
func environ() []string {
	out := []string{"LC_ALL=C"}
next:
	for _, v := range os.Environ() {
		for _, prefix := range foreign {
			if strings.HasPrefix(v, prefix) {
				continue next
			}
		}
		if !strings.HasPrefix(v, "LC_ALL=") {
			out = append(out, v)
		}
	}
	return out
}

// process is a program that runs under an allocator.
type process struct {
	cmd    *exec.Cmd
	done   context.CancelFunc
	ctx    context.Context
	report *os.File
	stderr bytes.Buffer
}

// start starts the job's program under the allocator, by work/timed.c. Its output goes
// to a file: a reader beside it would take the processor from it.
func (p *place) start(ctx context.Context, j job, c contender, output string) (*process, error) {
	r := &process{}
	r.ctx, r.done = context.WithTimeout(ctx, limit)
	cmd := exec.CommandContext(r.ctx, p.timed, append([]string{c.library}, j.args...)...)
	cmd.Env = append(append(environ(), j.env...), c.env...)
	cmd.Dir = j.dir
	// The group is what a time limit ends: the program is a child of the one started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: j.user}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stderr = &r.stderr
	r.cmd = cmd
	report, err := os.CreateTemp(p.dir, "report.")
	if err != nil {
		return nil, err
	}
	r.report = report
	cmd.ExtraFiles = []*os.File{report}
	out, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout = out
	if j.stdin != "" {
		in, err := os.Open(j.stdin)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		cmd.Stdin = in
	}
	return r, cmd.Start()
}

// wait returns what the run took.
func (r *process) wait() (sample, error) {
	defer r.done()
	defer os.Remove(r.report.Name())
	defer r.report.Close()
	err := r.cmd.Wait()
	if errors.Is(r.ctx.Err(), context.DeadlineExceeded) {
		return sample{}, fmt.Errorf("it did not end within %v", limit)
	}
	if r.ctx.Err() != nil {
		return sample{}, r.ctx.Err()
	}
	text := r.stderr.String()
	var ns, us, system int64
	var s sample
	var status syscall.WaitStatus
	if err == nil {
		_, err = r.report.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = fmt.Fscan(r.report, &ns, &us, &system, &s.faults, &s.peak, &status)
	}
	switch {
	case err != nil:
		return sample{}, fmt.Errorf("%w: %s", err, tail(text))
	case status.Signaled():
		return sample{}, fmt.Errorf("%v: %s", status.Signal(), tail(text))
	case status.ExitStatus() != 0:
		return sample{}, fmt.Errorf("status %d: %s", status.ExitStatus(), tail(text))
	// The loader goes on without a library: that would be glibc's time. And what this
	// library says of a variable would be measured without it.
	case strings.Contains(text, "cannot be preloaded"), strings.Contains(text, "tieralloc:"):
		return sample{}, errors.New(tail(text))
	}
	s.time, s.cpu = time.Duration(ns), time.Duration(us)*time.Microsecond
	s.system = time.Duration(system) * time.Microsecond
	return s, nil
}

// once runs the job under the allocator.
func (p *place) once(ctx context.Context, j job, c contender) (sample, error) {
	if j.once != nil {
		return j.once(ctx, p, c)
	}
	output := filepath.Join(p.dir, "output")
	r, err := p.start(ctx, j, c, output)
	if err != nil {
		return sample{}, err
	}
	s, err := r.wait()
	if err != nil {
		return sample{}, err
	}
	f, err := os.Open(output)
	if err != nil {
		return sample{}, err
	}
	defer f.Close()
	if j.own {
		return s, s.read(f)
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	s.sum = hex.EncodeToString(h.Sum(nil)[:8])
	return s, err
}

// read takes over what a program of work/ prints.
func (s *sample) read(f io.Reader) error {
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var rested int64
		word, value, _ := strings.Cut(lines.Text(), " ")
		var err error
		switch word {
		case "sum":
			s.sum = value
		case "steady":
			_, err = fmt.Sscan(value, &s.steady)
		case "rested":
			_, err = fmt.Sscan(value, &rested)
			s.time -= time.Duration(rested) * time.Millisecond
		default:
			err = errors.New("no such word")
		}
		if err != nil {
			return fmt.Errorf("it printed %q: %w", lines.Text(), err)
		}
	}
	if s.sum == "" {
		return errors.New("it printed no sum")
	}
	return nil
}
