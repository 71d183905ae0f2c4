package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tieralloc/stats/live"
)

// recorder samples live pages and writes a recording.
type recorder struct {
	find    func() []*live.Page // of the processes that are recorded; it opens them anew each time
	out     *recordingWriter
	start   time.Time
	tracked []*trackedPage
	next    int // id of the next process
}

// trackedPage is the live page of a process, open from its first sample to its last. An open page
// has the last figures even if the process has removed the file.
type trackedPage struct {
	page  *live.Page
	id    int
	t     int64 // of its last sample
	ended bool
}

// run takes samples until stop is closed, or until no process is left if alone is set.
func (r *recorder) run(interval time.Duration, stop <-chan struct{}, alone bool) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		r.sample()
		if alone && len(r.tracked) == 0 || r.out.err != nil {
			return
		}
		select {
		case <-stop:
			r.sample()
			return
		case <-tick.C:
		}
	}
}

// now is the time since the start.
func (r *recorder) now() int64 { return max(0, time.Since(r.start).Milliseconds()) }

// sample reads all pages.
func (r *recorder) sample() {
	here := map[live.ID]bool{}
	now := r.now()
	for _, page := range r.find() {
		known := slices.ContainsFunc(r.tracked, func(p *trackedPage) bool {
			return p.page.ID() == page.ID()
		})
		here[page.ID()] = true
		if known {
			page.Close()
			continue
		}
		r.begin(now, page)
	}
	r.tracked = slices.DeleteFunc(r.tracked, func(p *trackedPage) bool {
		present := here[p.page.ID()]
		r.read(p, now, present)
		if !present {
			p.page.Close()
		}
		return !present
	})
	r.out.flush(now)
}

func (r *recorder) begin(now int64, page *live.Page) {
	r.next++
	start := min(now, page.Start().Sub(r.start).Milliseconds())
	r.tracked = append(r.tracked, &trackedPage{page: page, id: r.next, t: max(0, start)})
	r.out.begin(now, r.next, recordBegin{Pid: page.Pid(), Parent: statOf(page.Pid()).parent,
		Program: printable(page.Program()), Start: max(start, -recordMostTime)})
}

// read writes what a page says. present says that its process or its file is still there.
func (r *recorder) read(p *trackedPage, now int64, present bool) {
	if p.ended {
		return
	}
	s, err := p.page.Snapshot()
	if err == nil && s.State.Dead() {
		s, err = p.page.Snapshot() // its last update may be from after the first look
	}
	if err != nil {
		r.end(p, now, "damaged")
		return
	}
	ended := s.State.Dead() || !present
	at := min(now, s.At.Sub(r.start).Milliseconds())
	if !ended || s.State != live.Exited {
		at = now
	}
	p.t = max(p.t, at)
	old := !ended && time.Since(s.At) > recordOld
	r.out.sample(p.t, p.id, figuresOf(s, residentBytes(p.page.Pid()), old), ended)
	if ended {
		r.end(p, p.t, r.howEnded(p, s.State))
		p.page.Remove() // only one that was made for this recording
	}
}

// howEnded says how a process has ended whose state was such at last.
func (r *recorder) howEnded(p *trackedPage, state live.State) string {
	if !state.Dead() {
		state = live.Killed
	}
	for _, other := range r.tracked {
		if other != p && other.page.Pid() == p.page.Pid() && !other.ended {
			state = live.Replaced
		}
	}
	return state.String()
}

func (r *recorder) end(p *trackedPage, t int64, how string) {
	p.ended = true
	r.out.end(max(t, p.t), p.id, how)
}

// finish ends the recording with the status of the command.
func (r *recorder) finish(status int) error {
	for _, p := range r.tracked {
		p.page.Close()
	}
	return r.out.close(r.now(), status)
}

// residentBytes is the resident memory of a process, 0 if it has ended.
func residentBytes(pid int) uint64 {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, _ := strconv.ParseUint(fields[1], 10, 64)
		return pages << kernelPageShift
	}
	return 0
}

// folderFinder finds the pages in a folder that was made for the recording. A page stays there when
// its process has ended, so that none is missed, however short its life was.
type folderFinder struct {
	dir    string
	folder *live.Folder
}

// newFolderFinder returns the finder, and TA_STATS_LIVE for the processes.
func newFolderFinder() (finder *folderFinder, path string, err error) {
	dir, err := os.MkdirTemp(live.UsualFolder, fmt.Sprintf("tieralloc-record.%d.", os.Getpid()))
	if err != nil {
		return nil, "", err
	}
	if os.Geteuid() == 0 { // programs that give up root's rights make pages as well
		err = os.Chmod(dir, 0o777|os.ModeSticky)
	}
	folder, bad := live.OpenFolder(dir)
	if err := cmp.Or(err, bad); err != nil {
		os.RemoveAll(dir)
		return nil, "", err
	}
	return &folderFinder{dir, folder}, escapeTemplate(dir) + "/%p", nil
}

func (f *folderFinder) find() (pages []*live.Page) {
	entries, _ := os.ReadDir(f.dir)
	for _, e := range entries {
		page, err := f.folder.Open(e.Name())
		if err != nil { // it is being made, or was removed
			continue
		}
		if page.Owner() != os.Geteuid() && !isOfProcess(page) {
			page.Close() // another user has put it there
			continue
		}
		pages = append(pages, page)
	}
	return pages
}

func (f *folderFinder) close() {
	f.folder.Close()
	os.RemoveAll(f.dir)
}

// treeFinder finds the pages of processes and of their children.
type treeFinder struct {
	known map[int]uint64 // the start times of the processes, by their numbers
}

// newTreeFinder starts with processes, each of which must have a page.
func newTreeFinder(pids []int) (*treeFinder, error) {
	f := &treeFinder{known: map[int]uint64{}}
	for _, pid := range pids {
		page := live.Mapped(pid)
		if page == nil {
			return nil, whyNoPage(pid)
		}
		page.Close()
		f.known[pid] = statOf(pid).start
	}
	return f, nil
}

func (f *treeFinder) find() (pages []*live.Page) {
	now := map[int]processStat{}
	for _, pid := range processes() {
		if s := statOf(pid); s.start != 0 {
			now[pid] = s
		}
	}
	for pid, start := range f.known {
		if now[pid].start != start {
			delete(f.known, pid)
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, s := range now {
			_, child := f.known[s.parent]
			if _, known := f.known[pid]; child && !known {
				f.known[pid], grown = s.start, true
			}
		}
	}
	for pid := range f.known {
		if page := live.Mapped(pid); page != nil {
			pages = append(pages, page)
		}
	}
	return pages
}

// processStat is what /proc/PID/stat says of a process.
type processStat struct {
	parent int
	start  uint64 // ticks since boot; 0: there is no such process, or it has ended
}

func statOf(pid int) (s processStat) {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	line := string(text) // proc_pid_stat(5): the name may hold parentheses, the state is the third
	const parent, threads, start = 4 - 3, 20 - 3, 22 - 3
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) <= start || fields[0] == "X" || fields[0] == "Z" && fields[threads] == "1" {
		return s
	}
	s.parent, _ = strconv.Atoi(fields[parent])
	s.start, _ = strconv.ParseUint(fields[start], 10, 64)
	return s
}
