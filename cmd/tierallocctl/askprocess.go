package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"tieralloc/stats/live"
)

// request is what a running process may be asked for: to write a file.
type request struct {
	what     uintptr // of package stats
	thing    string
	variable string // names the file
	without  string // the answer of a process without that variable
	ended    string // where the file of one that has ended may be
}

// written is a file that a process has written on request.
type written struct {
	path      string // as the process sees it
	elsewhere bool   // it is not known whether the process sees other files
}

// processNumber reports whether an argument is the number of a process: a positive number, and no
// file.
func processNumber(name string) (pid int, ok bool) {
	pid, err := strconv.Atoi(name)
	if err != nil || pid <= 0 {
		return 0, false
	}
	_, err = os.Lstat(name)
	return pid, err != nil
}

// askProcess calls ask with the live page of a process, once.
func askProcess(pid int, ask func(*live.Page) error) (failed error) {
	asked := false
	_, err := findPage(pid, func(file *live.Page) (*page, error) {
		if file.Pid() == pid && !asked {
			asked = true
			failed = ask(file)
		}
		return &page{pid: file.Pid()}, nil
	})
	switch {
	case asked:
		return failed
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run this as its user, or as root", err)
	}
	return err
}

// notAsked returns the error of a process that could not be asked.
func notAsked(file *live.Page, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("process %d: %w: only user %d, whose process it is, and root may "+
			"ask it: run this as one of them", file.Pid(), err, file.Owner())
	}
	return fmt.Errorf("process %d: %w", file.Pid(), err)
}

// askPage has the process of a live page write the file.
func (r *request) askPage(file *live.Page, wait time.Duration) (w written, err error) {
	pid := file.Pid()
	a, err := file.Ask(r.what, wait)
	switch {
	case errors.Is(err, live.ErrEnded):
		return w, fmt.Errorf("process %d ended before it wrote its %s; %s", pid, r.thing, r.ended)
	case errors.Is(err, live.ErrLate):
		return w, fmt.Errorf("process %d has not written its %s in %v: it does so when it "+
			"next allocates or frees; wait longer (--wait), or start it with TA_BACKGROUND=1, "+
			"with which it answers when idle, too", pid, r.thing, wait)
	case err != nil:
		return w, notAsked(file, err)
	case a.Errno == syscall.ENODATA:
		return w, fmt.Errorf("process %d %s", pid, r.without)
	case a.Errno == syscall.ENODEV:
		return w, fmt.Errorf("process %d has no %s: it uses no CUDA device", pid, r.thing)
	case a.Errno != 0:
		return w, fmt.Errorf("process %d cannot write its %s to %s (%s): %w", pid, r.thing, a.File,
			r.variable, a.Errno)
	case !filepath.IsAbs(a.File):
		return w, fmt.Errorf("process %d: damaged live page: its %s is %q, not an absolute path",
			pid, r.thing, a.File)
	}
	return written{a.File, file.State() == live.Unknown}, nil
}

// answerWait is how long a process is given to write a file.
const answerWait = 10 * time.Second

// checkWait refuses a time that is none.
func checkWait(wait time.Duration) error {
	if wait < 0 {
		return usage("--wait %v: expected a time such as 500ms or 1m", wait)
	}
	return nil
}

// openAsked reads a file, or what the process with that number writes when asked: in its root
// folder, or, where that is not known or may not be examined, in this one's. called is told the
// process's name of a file in its root folder.
func openAsked[T any](r *request, name string, wait time.Duration,
	read func(path string) (T, error), called func(f T, path string)) (f T, err error) {
	pid, ok := processNumber(name)
	if !ok {
		return read(name)
	}
	var w written
	err = askProcess(pid, func(file *live.Page) (err error) {
		w, err = r.askPage(file, wait)
		return err
	})
	if err != nil {
		return f, err
	}
	if !w.elsewhere {
		f, err = read(filepath.Join("/proc", strconv.Itoa(pid), "root", w.path))
		if err == nil {
			called(f, w.path)
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return f, err
		}
	}
	return read(w.path)
}
