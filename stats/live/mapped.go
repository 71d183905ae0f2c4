package live

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// candidates is the number of mappings of a process that are examined at most. Programs have one or
// two of a page's size. The limit keeps a process with many from keeping its readers busy.
const candidates = 64

// Mapped opens the live page that a process has mapped, wherever the file is. It needs the right to
// trace the process, which root and the process's own user have. Without the right, or if the
// process has no live page, Mapped returns nil. A page of another version has another size and is
// not found.
func Mapped(pid int) (found *Page) {
	proc := "/proc/" + strconv.Itoa(pid)
	seen := 0
	pageMappings(proc, func(m mapping) (more bool) {
		if seen++; seen > candidates {
			return false
		}
		p, err := openMapped(proc, m)
		if err != nil {
			return true
		}
		if p.head.Pid == innerNumber(proc, pid) {
			p.holder, found = pid, p
			return false
		}
		p.Close() // the page of another process whose memory this one shares, or a forged one
		return true
	})
	return found
}

// openMapped opens the mapped file. The kernel opens it through /proc/PID/map_files only for a
// caller that may checkpoint any process. For others openMapped opens the file that has the name
// now, if it has the same inode.
func openMapped(proc string, m mapping) (*Page, error) {
	at := fmt.Sprintf("%s/map_files/%x-%x", proc, m.from, m.to)
	p, err := openAt(unix.AT_FDCWD, at, m.path, 0)
	if !errors.Is(err, unix.EPERM) {
		return p, err
	}
	p, err = openAt(unix.AT_FDCWD, m.path, m.path, unix.O_NOFOLLOW)
	if err == nil && p.stat.Ino != m.inode {
		p.Close()
		return nil, fmt.Errorf("%s: another file has taken its place", m.path)
	}
	return p, err
}

// innerNumber is the process's number in its own PID namespace. proc is its folder.
func innerNumber(proc string, pid int) uint64 {
	var ns unix.Stat_t
	own := numbering()
	if own != 0 && unix.Stat(proc+"/ns/pid", &ns) == nil && ns.Ino == own {
		return uint64(pid)
	}
	if numbers := numbersOf(proc); len(numbers) > 0 {
		if n, err := strconv.ParseUint(numbers[len(numbers)-1], 10, 64); err == nil {
			return n
		}
	}
	return uint64(pid)
}

// numbering is this program's PID namespace if /proc shows the numbers of that namespace, or 0.
var numbering = sync.OnceValue(func() uint64 {
	if len(numbersOf("/proc/self")) != 1 {
		return 0
	}
	return pidNamespace()
})

// numbersOf returns the numbers of a process in the PID namespaces that it is in, from that of
// /proc to its own.
func numbersOf(proc string) []string {
	status, _ := os.ReadFile(proc + "/status")
	for line := range strings.Lines(string(status)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return strings.Fields(numbers)
		}
	}
	return nil
}
