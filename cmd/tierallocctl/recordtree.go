package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tieralloc/stats/live"
)

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
