package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

// mapping is a mapping of another process, from its maps and numa_maps.
type mapping struct {
	start, end uint64
	offset     int64
	inode      uint64 // 0: no file's
	path       string
	perNode    map[int]uint64 // resident bytes
}

// procError turns an error of the kernel into one about the process.
func procError(pid int, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("process %d cannot be examined: run this as its user, or as root", pid)
	case errors.Is(err, os.ErrNotExist) && !processRuns(pid), errors.Is(err, syscall.ESRCH):
		return fmt.Errorf("there is no process %d", pid)
	}
	return err
}

func processRuns(pid int) bool {
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	return err == nil
}

// threadWithMemory returns a thread of the process whose memory the kernel shows: the first, or
// another if that has ended.
func threadWithMemory(pid int) int {
	tasks, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if maps, _ := mapsOf(tid); err == nil && len(maps) != 0 {
			return tid
		}
	}
	return pid
}

// readMappings returns the mappings of a process, in order.
func readMappings(pid int) ([]mapping, error) {
	all, err := mapsOf(pid)
	if err != nil {
		return nil, err
	}
	numa, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "numa_maps"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("this kernel does not report nodes: there is no " +
			"/proc/PID/numa_maps")
	}
	if err != nil {
		return nil, procError(pid, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("process %d has no memory: it has ended, or is the kernel's", pid)
	}
	addNodes(all, numa)
	return all, nil
}

// mapsOf returns the mappings of a process without their nodes. The error explains what to do.
func mapsOf(pid int) (all []mapping, err error) {
	var maps []*procfs.ProcMap
	p, err := procfs.NewProc(pid)
	if err == nil {
		maps, err = p.ProcMaps()
	}
	for _, m := range maps {
		all = append(all, mapping{start: uint64(m.StartAddr), end: uint64(m.EndAddr),
			offset: m.Offset, inode: m.Inode, path: strings.TrimSuffix(m.Pathname, " (deleted)")})
	}
	return all, procError(pid, err)
}

// addNodes reads the lines START POLICY WORD... Among the words, N0=5 means 5 pages on node 0, and
// kernelpagesize_kB=4 is their size. It ignores a mapping that is not in all.
func addNodes(all []mapping, text []byte) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		start, err := strconv.ParseUint(fields[0], 16, 64)
		i, found := slices.BinarySearchFunc(all, start, func(m mapping, at uint64) int {
			return int(min(max(int64(m.start-at), -1), 1))
		})
		if err != nil || !found {
			continue
		}
		unit, pages := uint64(os.Getpagesize()), map[int]uint64{}
		for _, word := range fields[1:] {
			var node int
			var n uint64
			if _, err := fmt.Sscanf(word, "N%d=%d", &node, &n); err == nil {
				pages[node] += n
			} else if _, err := fmt.Sscanf(word, "kernelpagesize_kB=%d", &n); err == nil {
				unit = n << 10
			}
		}
		for node := range pages {
			pages[node] *= unit
		}
		all[i].perNode = pages
	}
}

// containing returns the mapping that contains an address, or nil.
func containing(all []mapping, addr uint64) *mapping {
	i, _ := slices.BinarySearchFunc(all, addr, func(m mapping, at uint64) int {
		switch {
		case m.end <= at:
			return -1
		case m.start > at:
			return 1
		}
		return 0
	})
	if i < len(all) && all[i].start <= addr && addr < all[i].end {
		return &all[i]
	}
	return nil
}
