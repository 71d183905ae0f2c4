package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tieralloc/stats/live"
)

// Where live pages are unless TA_STATS_LIVE names another place.
const (
	pageDir     = "/dev/shm"
	pagePattern = pageDir + "/tieralloc.%p"
)

// page is a live page as it was read.
type page struct {
	path    string
	pid     int
	program string
	start   time.Time
	state   live.State
	age     time.Duration // of the figures
	text    []byte        // the report as JSON
	report  *report       // nil: there was no update yet, and text is nil too
}

// readPage reads the live page at path.
func readPage(path string) (*page, error) {
	file, err := live.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return snapshot(file)
}

func snapshot(file *live.Page) (*page, error) {
	s, err := file.Snapshot()
	if err != nil {
		return nil, err
	}
	p := &page{path: file.Path(), pid: file.Pid(), program: printable(file.Program()), start: file.Start(),
		state: s.State, age: s.Age()}
	if s.Updates == 0 {
		return p, nil
	}
	if p.text, err = s.JSON(); err != nil {
		return nil, err
	}
	if p.report, err = decodeReport(p.text); err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	return p, nil
}

// pagePaths lists the files that the live page of a process with the environment env
// may be. pid is its number, or * for any.
func pagePaths(env environ, pid string) []string {
	pattern, ok := env.get("TA_STATS_LIVE")
	switch {
	case !ok || pattern == "0":
		return nil
	case pattern == "1":
		pattern = pagePattern
	}
	return expand(pattern, pid)
}

// environOf is the environment that a process was started with. Programs may have
// overwritten it.
func environOf(pid int) environ {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return strings.Split(string(text), "\x00")
}

// mappedFiles lists the files that a process shares with others, and whether it has
// the library. ok is false when it may not be looked at.
func mappedFiles(pid int) (shared []string, preloaded, ok bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
	if err != nil {
		return nil, false, false
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line) // range, rights, offset, device, inode, path
		at := bytes.IndexByte(line, '/')
		if len(fields) < 6 || at < 0 {
			continue
		}
		path := strings.TrimSuffix(strings.TrimSuffix(string(line[at:]), "\n"), " (deleted)")
		preloaded = preloaded || filepath.Base(path) == libraryName
		if string(fields[1]) == "rw-s" && !slices.Contains(shared, path) {
			shared = append(shared, path)
		}
	}
	return shared, preloaded, true
}

// findPage reads the live page of a process, running or dead.
func findPage(pid int) (*page, error) {
	shared, preloaded, visible := mappedFiles(pid)
	paths := shared
	number := strconv.Itoa(pid)
	paths = append(paths, pagePaths(environOf(pid), number)...)
	paths = append(paths, pagePaths(os.Environ(), number)...)
	paths = append(paths, expand(pagePattern, number)...)
	var failed error
	for _, path := range paths {
		p, err := readPage(path)
		switch {
		case err == nil && p.pid == pid:
			return p, nil
		case err == nil, errors.Is(err, live.ErrNotPage), errors.Is(err, os.ErrNotExist):
		default:
			failed = err
		}
	}
	if failed != nil {
		return nil, fmt.Errorf("process %d: %w", pid, failed)
	}
	return nil, whyNoPage(pid, preloaded, visible)
}

// whyNoPage is the error for a process without a live page: what to do about it.
func whyNoPage(pid int, preloaded, visible bool) error {
	const how = "start it with TA_STATS_LIVE=1, or by: tierallocctl run --live -- COMMAND"
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	switch {
	case err != nil:
		return fmt.Errorf("there is no process %d, and no live page of it in %s (one is kept of processes started with"+
			" TA_STATS_LIVE=1; a statistics file is read by its name: tierallocctl stats FILE)", pid, pageDir)
	case !visible:
		return fmt.Errorf("process %d is not to be looked into, and no live page of it can be read in %s:"+
			" ask as its user, or as root", pid, pageDir)
	case !preloaded:
		return fmt.Errorf("process %d runs without %s, or has no live page: %s", pid, libraryName, how)
	}
	return fmt.Errorf("process %d has no live page: %s", pid, how)
}

// allPages reads all live pages that can be found: those in the usual place, where
// TA_STATS_LIVE says, and where the environment of a running process says. Errors are of
// single pages, beside which the others are returned.
func allPages() ([]*page, error) {
	var pages []*page
	var bad []error
	seen := map[string]bool{}
	files, err := live.List(pageDir)
	bad = append(bad, err)
	for _, file := range files {
		p, err := snapshot(file)
		file.Close()
		if err != nil {
			bad = append(bad, err)
			continue
		}
		seen[p.path] = true
		pages = append(pages, p)
	}
	for _, path := range otherPages() {
		if seen[path] {
			continue
		}
		seen[path] = true
		if p, err := readPage(path); err == nil {
			pages = append(pages, p)
		}
	}
	slices.SortFunc(pages, func(a, b *page) int { return a.pid - b.pid })
	return pages, errors.Join(bad...)
}

// otherPages lists pages that are elsewhere than in the usual place.
func otherPages() []string {
	paths := customPages(os.Environ(), "*")
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return paths
	}
	for _, proc := range procs {
		if pid, err := strconv.Atoi(proc.Name()); err == nil {
			paths = append(paths, customPages(environOf(pid), proc.Name())...)
		}
	}
	return paths
}

// customPages is pagePaths for environments that name a place of their own.
func customPages(env environ, pid string) []string {
	if pattern, _ := env.get("TA_STATS_LIVE"); !strings.HasPrefix(pattern, "/") {
		return nil
	}
	return pagePaths(env, pid)
}
