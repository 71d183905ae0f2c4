package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tieralloc/numa"
	"tieralloc/stats/live"
)

// A runReport finds the statistics of a command that has ended.
type runReport struct {
	env     environ
	pattern string // TA_STATS_FILE for the command
	dir     string // a temporary folder for them; "": the user has named a path
	nodes   *numa.Topology
	ownPage bool // this program asked for the live page, and removes it at the end
}

// newRunReport chooses the paths of a command's statistics and live page, and adds them to its
// environment.
func newRunReport(env environ) (*runReport, error) {
	l := &runReport{}
	pattern, ok := env.get("TA_STATS_FILE")
	if !ok {
		dir, err := os.MkdirTemp("", "tierallocctl.")
		if err != nil {
			return nil, err
		}
		l.dir, pattern = dir, escapeTemplate(dir)+"/%p.%e.json"
	}
	pattern, err := absolute(pattern)
	l.pattern = pattern
	env = env.with("TA_STATS_FILE", pattern)
	// If no page could be made, the library would complain in each process.
	if _, ok := env.get("TA_STATS_LIVE"); !ok &&
		unix.Access(live.UsualFolder, unix.W_OK|unix.X_OK) == nil {
		l.ownPage = true
		env = env.with("TA_STATS_LIVE", "1")
	}
	l.env = env
	return l, err
}

// absolute makes a template's path absolute.
func absolute(pattern string) (string, error) {
	if filepath.IsAbs(pattern) {
		return pattern, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return escapeTemplate(dir) + "/" + pattern, nil
}

// escapeTemplate returns the template that stands for path.
func escapeTemplate(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// close removes the temporary folder and the command's live page. Pages of its children stay if
// they were killed.
func (l *runReport) close(end ending) {
	if l.dir != "" {
		os.RemoveAll(l.dir)
	}
	if l.ownPage {
		l.eachPage(end, (*live.Page).Remove)
	}
}

// eachPage calls use for the live page of the command's process, if it left one. It ignores files
// of other users, who may write to the usual folder too.
func (l *runReport) eachPage(end ending, use func(*live.Page) error) {
	for _, path := range pagePaths(l.env, strconv.Itoa(end.pid)) {
		inFolder(path, func(file *live.Page) error {
			if file.Pid() != end.pid || file.Owner() != os.Geteuid() ||
				file.Start().Before(end.started) {
				return nil
			}
			return use(file)
		})
	}
}

// tell writes the summary, and keeps the statistics if the user wants them.
func (l *runReport) tell(w io.Writer, o runOptions, end ending) error {
	text, r, path := l.find(end)
	if r == nil {
		p := l.lastPage(end)
		if p == nil {
			if o.quiet && o.json == "" {
				return nil
			}
			why := l.why(end)
			if v, _ := l.env.get("TA_STATS_LIVE"); v == "0" && end.signal != 0 {
				why += "; with a live page its last figures remain"
			}
			return fmt.Errorf("no statistics of %s: %s", filepath.Base(end.path), why)
		}
		text, r = p.text, p.report
		if !o.quiet {
			fmt.Fprintf(w,
				"tierallocctl: %s left no statistics (%s); these are the last of its live page, "+
					"of %s after its start\n",
				filepath.Base(end.path), l.why(end), duration(r.UptimeNs))
		}
	}
	if !o.quiet {
		summarize(w, r)
		if len(overflowInReport(r)) == 0 {
			writeLines(w, pastNodes(r, l.nodes))
		}
		if n := l.others(path); n > 0 {
			fmt.Fprintf(w,
				"%s of other processes; to keep them: --stats-file 'stats.%%p.%%e.json'\n",
				plural(n, "more report"))
		}
	}
	if o.json == "" {
		return nil
	}
	return os.WriteFile(o.json, text, 0o600)
}

// find reads the statistics of the command's process. Statistics from before the command was
// started belong to an earlier process with its number.
func (l *runReport) find(end ending) (text []byte, r *report, path string) {
	for _, path := range expand(l.pattern, strconv.Itoa(end.pid)) {
		text, r, err := readReportFile(path)
		if err == nil && r.Pid == end.pid && r.StartUnixNs >= uint64(end.started.UnixNano()) {
			return text, r, path
		}
	}
	return nil, nil, ""
}

// others counts the reports in the temporary folder, except the one at path.
func (l *runReport) others(path string) int {
	if l.dir == "" {
		return 0
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return 0
	}
	n := len(entries)
	if path != "" {
		n--
	}
	return n
}

// why guesses why there are no statistics.
func (l *runReport) why(end ending) string {
	if v, _ := l.env.get("TA_DISABLE"); v == "1" {
		return "TA_DISABLE=1"
	}
	if why := unreachable(end.path); why != "" {
		return why
	}
	if end.signal != 0 {
		return "signal " + unix.SignalName(end.signal) + " ended it before it could write them"
	}
	return "it ended without calling exit (as Go programs do), or it turned by exec into a " +
		"program that" +
		" did not load the library (static, set-user-ID, LD_PRELOAD removed)"
}

// expand lists the files that a template may stand for. pid is the process's number, or "*" for
// any. Other fields of the template match any name.
func expand(pattern, pid string) []string {
	var glob strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c == '%' && i+1 < len(pattern) {
			i++
			switch pattern[i] {
			case 'p':
				glob.WriteString(pid)
			case 'e', 'r', 'h':
				glob.WriteByte('*')
			default:
				glob.WriteByte('%')
			}
			continue
		}
		if strings.IndexByte(`*?[\`, c) >= 0 {
			glob.WriteByte('\\')
		}
		glob.WriteByte(c)
	}
	files, _ := filepath.Glob(glob.String()) // its one error is a bad pattern
	return files
}

// canCreate checks that the statistics can be kept, before a command runs for hours.
func canCreate(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("cannot keep the statistics in %s: it is not a regular file", path)
	}
	err := unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK)
	if err == nil && unix.Access(path, unix.W_OK) == unix.EACCES {
		err = os.ErrPermission
	}
	if err != nil {
		return fmt.Errorf("cannot keep the statistics in %s: %w", path, err)
	}
	return nil
}

// lastPage returns the command's live page with its last figures, nil if there are none.
func (l *runReport) lastPage(end ending) (last *page) {
	l.eachPage(end, func(file *live.Page) error {
		p, err := snapshot(file)
		if err == nil && p.report != nil {
			last = p
		}
		return err
	})
	return last
}
