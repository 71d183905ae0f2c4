package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ending says how a command ended.
type ending struct {
	path    string // of the program
	pid     int
	status  int // as in a shell
	signal  syscall.Signal
	started time.Time
}

// passed lists the signals that are passed on to the command.
var passed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
	syscall.SIGUSR2,
}

// runChild runs the program at path to its end, with this process's own files. The command stays in
// this process group: in a group of its own, it could take the terminal from other programs of a
// pipeline.
func runChild(path string, args []string, env environ) (ending, error) {
	cmd := &exec.Cmd{Path: path, Args: args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr}
	signals := catchPassed()
	end := ending{path: path, started: time.Now()}
	if err := cmd.Start(); err != nil {
		signal.Reset()
		return end, fmt.Errorf("cannot run %w", err)
	}
	// If nobody reads the summary any more, the exit status stays the command's.
	signal.Ignore(syscall.SIGPIPE)
	end.pid = cmd.Process.Pid
	go passOn(cmd.Process, signals)
	err := cmd.Wait()
	if cmd.ProcessState == nil {
		return end, err
	}
	end.status = cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		end.signal = ws.Signal()
		end.status = statusSignal + int(end.signal)
	}
	return end, nil
}

// catchPassed returns a channel of the signals to pass on.
func catchPassed() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, s := range passed {
		if !signal.Ignored(s) { // ignored as under nohup: the command ignores it too
			signal.Notify(signals, s)
		}
	}
	return signals
}

// passOn passes signals on to the command. An interrupt or quit from the keyboard has reached it
// already; some programs take a second one as another request.
func passOn(p *os.Process, signals <-chan os.Signal) {
	for s := range signals {
		if (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground() {
			continue
		}
		p.Signal(s)
	}
}

// inForeground reports whether the keyboard's signals go to this process group.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
