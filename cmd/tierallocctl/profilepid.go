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

// profileWait is how long a process is given to write its profile.
const profileWait = 10 * time.Second

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

// openProfile reads a profile: of a file, or of a running process by its number.
func openProfile(name string, wait time.Duration) (*profileFile, error) {
	pid, ok := processNumber(name)
	if !ok {
		return readProfile(name)
	}
	return askProfile(pid, wait)
}

// askProfile has a process write its profile, and reads that.
func askProfile(pid int, wait time.Duration) (*profileFile, error) {
	var f *profileFile
	var failed error
	asked := false
	_, err := findPageBy(pid, func(file *live.Page) (*page, error) {
		if file.Pid() == pid && !asked {
			asked = true
			f, failed = askPage(file, wait)
		}
		return &page{pid: file.Pid()}, nil
	})
	switch {
	case asked:
		return f, failed
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%w: run this as its user, or as root", err)
	}
	return nil, err
}

// askPage is askProfile for the process of a live page.
func askPage(file *live.Page, wait time.Duration) (*profileFile, error) {
	pid := file.Pid()
	a, err := file.Ask(wait)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("process %d: %w: only user %d, whose process it is, and root may "+
			"ask it: run this as one of them", pid, err, file.Owner())
	case errors.Is(err, live.ErrEnded):
		return nil, fmt.Errorf("process %d ended before it wrote its profile; the file that "+
			"TA_PROFILE names has its profile if it was not killed", pid)
	case errors.Is(err, live.ErrLate):
		return nil, fmt.Errorf("process %d has not written its profile in %v: it does so when it "+
			"next allocates or frees; wait longer (--wait), or start it with TA_BACKGROUND=1, "+
			"with which it answers when idle, too", pid, wait)
	case err != nil:
		return nil, fmt.Errorf("process %d: %w", pid, err)
	case a.Errno == syscall.ENODATA:
		return nil, fmt.Errorf("process %d takes no profile: start it with TA_PROFILE=FILE (and "+
			"without TA_SECURE=1)", pid)
	case a.Errno != 0:
		return nil, fmt.Errorf("process %d cannot write its profile to %s (TA_PROFILE): %w", pid,
			a.File, a.Errno)
	case !filepath.IsAbs(a.File):
		return nil, fmt.Errorf("process %d: damaged live page: its profile is %q, not an absolute "+
			"path", pid, a.File)
	}
	return readProfileOf(pid, a.File, file.State() == live.Unknown)
}

// readProfileOf reads the file that a process calls path: in its root folder, or, where that is not
// known or may not be examined, in this one's.
func readProfileOf(pid int, path string, elsewhere bool) (*profileFile, error) {
	if !elsewhere {
		f, err := readProfile(filepath.Join("/proc", strconv.Itoa(pid), "root", path))
		if err == nil {
			f.path = path
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return f, err
		}
	}
	return readProfile(path)
}
