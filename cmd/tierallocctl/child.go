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

// ending is what is known of a command that has ended.
type ending struct {
	path    string // of the program
	pid     int
	status  int // as a shell has it
	signal  syscall.Signal
	started time.Time
}

// passed are the signals that are passed on to the command.
var passed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
	syscall.SIGUSR2,
}

// runChild runs the program at path to its end, with this process's own files. The
// command stays in this process group: in a group of its own, other programs of a
// pipeline could lose the terminal to it.
func runChild(path string, args []string, env environ) (ending, error) {
	cmd := &exec.Cmd{Path: path, Args: args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr}
	signals := make(chan os.Signal, 16)
	for _, s := range passed {
		if !signal.Ignored(s) { // as under nohup: then the command ignores it too
			signal.Notify(signals, s)
		}
	}
	end := ending{path: path, started: time.Now()}
	if err := cmd.Start(); err != nil {
		signal.Reset()
		return end, fmt.Errorf("cannot run %w", err)
	}
	// The summary may have no reader any more: that does not change the exit status.
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

// passOn sends what comes to the command. An interrupt or quit from the keyboard has
// reached it already: two would mean something else to some programs.
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
