package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a program under the allocator that serves, and a load, plain, that asks it. The time
// is the load's; memory and processor time are the server's.
type server struct {
	job
	ready func(context.Context) error // nil as soon as it serves; asked again for a minute
	load  []string
	stop  func(context.Context) error // asks it to end
}

func (v server) run(ctx context.Context, p *place, c contender) (sample, error) {
	r, err := p.start(ctx, v.job, c, filepath.Join(p.dir, "output"))
	if err != nil {
		return sample{}, err
	}
	took, err := v.drive(r.ctx)
	if err != nil {
		r.done() // ends the server
		_ = r.cmd.Wait()
		r.report.Close()
		return sample{}, fmt.Errorf("%w: %s", err, tail(r.stderr.String()))
	}
	s, err := r.wait()
	s.time = took
	return s, err
}

// drive asks the server for what the load is, and to end.
func (v server) drive(ctx context.Context) (time.Duration, error) {
	if err := v.await(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	cmd := exec.CommandContext(ctx, v.load[0], v.load[1:]...)
	cmd.Env = environ()
	if text, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", filepath.Base(v.load[0]), err, tail(string(text)))
	}
	took := time.Since(start)
	return took, v.stop(ctx)
}

func (v server) await(ctx context.Context) error {
	for try := 0; ; try++ {
		err := v.ready(ctx)
		if err == nil || try == 6000 || ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// signalOf sends the signal to the process whose number begins a file.
func signalOf(file string, signal syscall.Signal) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || pid <= 1 {
		return fmt.Errorf("%s: %q is no process", file, first)
	}
	return syscall.Kill(pid, signal)
}
