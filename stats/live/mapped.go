package live

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// candidates is the number of mappings of a process that are examined at most. Programs have one or
// two of a page's size. The limit keeps a process with many from keeping its readers busy.
const candidates = 64

// Mapped opens the live page that a process has mapped, wherever the file is. It needs the right to
// trace the process, which root and the process's own user have. Without the right, or if the
// process has no live page, Mapped returns nil. A page of another version has another size and is
// not found.
func Mapped(pid int) *Page {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	if err != nil {
		return nil
	}
	seen := 0
	for line := range bytes.Lines(maps) {
		m, ok := parseMapping(line)
		if !ok {
			continue
		}
		if seen++; seen > candidates {
			break
		}
		p, err := openMapped(proc, m)
		if err != nil {
			continue
		}
		if p.head.Pid == innerNumber(proc, pid) {
			p.holder = pid
			return p
		}
		p.Close() // the page of another process whose memory this one shares, or a forged one
	}
	return nil
}

// mapping is a line of /proc/PID/maps that may describe a live page.
type mapping struct {
	from, to, inode uint64
	path            string
}

// parseMapping parses a line. ok says that it describes a writable shared mapping of a page's size,
// from the start of a file.
func parseMapping(line []byte) (m mapping, ok bool) {
	if !bytes.Contains(line, []byte(" rw-s 00000000 ")) {
		return m, false
	}
	fields := bytes.Fields(line) // range, rights, offset, device, inode, path
	at := bytes.IndexByte(line, '/')
	if len(fields) < 6 || at < 0 {
		return m, false
	}
	from, to, _ := strings.Cut(string(fields[0]), "-")
	var bad [3]error
	m.from, bad[0] = strconv.ParseUint(from, 16, 64)
	m.to, bad[1] = strconv.ParseUint(to, 16, 64)
	m.inode, bad[2] = strconv.ParseUint(string(fields[4]), 10, 64)
	m.path = strings.TrimSuffix(string(line[at:]), "\n")
	return m, errors.Join(bad[:]...) == nil && isSize(m.to-m.from)
}

// openMapped opens the mapped file. The kernel opens it through /proc/PID/map_files only for a
// caller that may checkpoint any process. For others openMapped opens the file that has the name
// now, if it has the same inode.
func openMapped(proc string, m mapping) (*Page, error) {
	at := filepath.Join(proc, "map_files", fmt.Sprintf("%x-%x", m.from, m.to))
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

// innerNumber is the process's number in its own PID namespace.
func innerNumber(proc string, pid int) uint64 {
	status, _ := os.ReadFile(filepath.Join(proc, "status"))
	for line := range strings.Lines(string(status)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			numbers = strings.TrimSpace(numbers)
			last := numbers[strings.LastIndexAny(numbers, " \t")+1:]
			if n, err := strconv.ParseUint(last, 10, 64); err == nil {
				return n
			}
		}
	}
	return uint64(pid)
}
