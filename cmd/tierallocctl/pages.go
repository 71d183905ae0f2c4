package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"

	"tieralloc/internal/config"
	"tieralloc/stats/live"
)

// pagePattern is the template that TA_STATS_LIVE=1 stands for.
const pagePattern = live.UsualFolder + "/tieralloc.%p"

// howToPage says how to get a live page.
const howToPage = "start it by tierallocctl run -- COMMAND, or with TA_STATS_LIVE=1"

// page is a live page as it was read.
type page struct {
	path    string
	pid     int
	owner   int // number of the user who owns the file
	program string
	start   time.Time
	state   live.State
	age     time.Duration // of the figures
	text    []byte        // the report as JSON
	report  *report       // nil: no update yet; text is nil too
	other   error         // another version wrote it: report is nil
	heat    *live.History // by heatSnapshot only
	noHeat  error         // why heat is nil
}

// readPage reads the live page at path by read.
func readPage(path string, read func(*live.Page) (*page, error)) (*page, error) {
	file, err := live.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return read(file)
}

func snapshot(file *live.Page) (*page, error) {
	p := &page{path: file.Path(), pid: file.Pid(), owner: file.Owner(),
		program: printable(file.Program()), start: file.Start()}
	s, err := file.Snapshot()
	if errors.Is(err, live.ErrVersion) {
		if p.state, p.other = file.State(), err; p.state.Dead() {
			return p, nil // it can still be removed
		}
	}
	if err != nil {
		return nil, err
	}
	p.state, p.age = s.State, s.Age()
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

// pagePaths lists the files that may be the live page of a process with the environment env. pid is
// its number, or * for any.
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

// inFolder calls use for the live page at path, with its folder open.
func inFolder(path string, use func(*live.Page) error) error {
	folder, err := live.OpenFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	file, err := folder.Open(filepath.Base(path))
	if err != nil {
		return err
	}
	defer file.Close()
	return use(file)
}

// libraryIn reports whether a process has loaded the library. visible is false if the process may
// not be examined.
func libraryIn(pid int) (preloaded, visible bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
	return bytes.Contains(text, []byte("/"+libraryName)), err == nil
}

// settledHere returns this program's environment, completed by the settings for the whole system.
func settledHere() environ {
	return environ(os.Environ()).withFile(readSystemFile(config.FilePath))
}

// findPage reads the live page of a process by read. It tries the page that the process has
// mapped, the usual name, and the name that TA_STATS_LIVE gives here or for the whole system.
func findPage(pid int, read func(*live.Page) (*page, error)) (*page, error) {
	var found *page
	var failed error
	use := func(file *live.Page) error {
		p, err := read(file)
		if err == nil && found == nil && p.pid == pid {
			found = p
		}
		return err
	}
	try := func(err error) {
		if err != nil && !errors.Is(err, live.ErrNotPage) && !errors.Is(err, os.ErrNotExist) {
			failed = err
		}
	}
	if file := live.Mapped(pid); file != nil {
		try(use(file))
		file.Close()
	}
	number := strconv.Itoa(pid)
	for _, path := range append(expand(pagePattern, number), pagePaths(settledHere(), number)...) {
		if found == nil {
			try(inFolder(path, use))
		}
	}
	switch {
	case found != nil:
		return found, nil
	case failed != nil:
		return nil, fmt.Errorf("process %d: %w", pid, failed)
	}
	return nil, whyNoPage(pid)
}

// whyNoPage returns the error for a process without a live page, which says what to do.
func whyNoPage(pid int) error {
	preloaded, visible := libraryIn(pid)
	switch {
	case !processRuns(pid):
		return fmt.Errorf("there is no process %d, and no live page of it in %s (processes "+
			"started with TA_STATS_LIVE=1 leave one; to read a statistics file: tierallocctl "+
			"stats FILE)",
			pid, live.UsualFolder)
	case !visible:
		return fmt.Errorf("process %d cannot be examined, and no live page of it can be read in "+
			"%s: run this as its user, or as root", pid, live.UsualFolder)
	case !preloaded:
		return fmt.Errorf("process %d runs without %s, or has no live page: %s", pid, libraryName,
			howToPage)
	}
	return fmt.Errorf("process %d has no live page: %s", pid, howToPage)
}

// eachPage calls use for each live page that can be found, one at a time: those that processes have
// mapped, those in the usual folder, and those where TA_STATS_LIVE says here or for the whole
// system. It does not read other processes' environments, which would let them choose the files
// that are opened. limit bounds the files of each other user that are read in the usual folder; 0
// is no limit. The error joins those of single pages.
func eachPage(limit int, use func(*live.Page) error) error {
	seen := map[live.ID]bool{}
	once := func(file *live.Page) error {
		if seen[file.ID()] {
			return nil
		}
		seen[file.ID()] = true
		return use(file)
	}
	bad := eachMapped(processes(), once)
	usual, err := live.OpenFolder(live.UsualFolder)
	if err == nil {
		err = usual.Usual(limit, func(id live.ID) bool { return seen[id] }, once)
		usual.Close()
	}
	bad = append(bad, err)
	if pattern, _ := settledHere().get("TA_STATS_LIVE"); strings.HasPrefix(pattern, "/") {
		for _, path := range expand(pattern, "*") {
			inFolder(path, once) // other files may match the pattern: errors are ignored
		}
	}
	return errors.Join(bad...)
}

// eachMapped calls use for the live page that each process has mapped, one at a time. It looks for
// them in parallel: reading a process's mappings takes longer than reading its page.
func eachMapped(pids []int, use func(*live.Page) error) []error {
	bad := make([]error, len(pids))
	var next atomic.Int64
	var using sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(pids); i = int(next.Add(1)) - 1 {
				if file := live.Mapped(pids[i]); file != nil {
					using.Lock()
					bad[i] = use(file)
					using.Unlock()
					file.Close()
				}
			}
		})
	}
	all.Wait()
	return bad
}

// processes returns the numbers of all processes that are visible.
func processes() (pids []int) {
	all, _ := procfs.AllProcs()
	for _, p := range all {
		pids = append(pids, p.PID)
	}
	return pids
}

// perUser is how many pages of another user are read in the usual folder. Those of running
// processes are found in their memory as well.
const perUser = 500

// allPages reads the live pages that can be found, but of users that have very many only the
// newest. The error names those that cannot be read.
func allPages() ([]*page, error) {
	var pages []*page
	bad := eachPage(perUser, func(file *live.Page) error {
		p, err := snapshot(file)
		if err == nil {
			pages = append(pages, p)
		}
		return err
	})
	slices.SortStableFunc(pages, func(a, b *page) int { return a.pid - b.pid })
	return pages, bad
}
