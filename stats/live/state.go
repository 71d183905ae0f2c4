package live

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"tieralloc/stats"
)

// State is what became of a page's process.
type State int

// The states of a process.
const (
	Running  State = iota
	Exited         // it has ended and said so: the figures are its last
	Killed         // it is gone without a word, by a signal or a restart of the machine
	Replaced       // it runs another program now (execve) that does not update the page
	Unknown        // it is in another PID namespace, where it cannot be seen from here
)

func (s State) String() string {
	switch s {
	case Running:
		return "running"
	case Exited:
		return "exited"
	case Killed:
		return "killed"
	case Replaced:
		return "replaced"
	}
	return "unknown"
}

// Dead reports whether nobody will update the page any more.
func (s State) Dead() bool { return s == Exited || s == Killed || s == Replaced }

// State is what became of the page's process by now.
func (p *Page) State() State {
	s := p.look()
	// Last, for the process may just have ended.
	if v, err := p.word(stateAt); err == nil && v == stats.LiveExited {
		return Exited
	}
	return s
}

// look is State by what the system says. A page that its process was found by is in its
// memory; of another one, which may say what it likes, that is looked up.
func (p *Page) look() State {
	if p.holder != 0 {
		return Running
	}
	if id := text(p.head.BootID[:]); id != "" && bootID() != "" && id != bootID() {
		return Killed
	}
	if ns := pidNamespace(); p.head.PidNamespace != 0 && ns != 0 && ns != p.head.PidNamespace {
		return Unknown
	}
	if syscall.Kill(p.Pid(), 0) == syscall.ESRCH {
		return Killed
	}
	proc, ok := processOf(p.Pid())
	switch {
	case !ok:
		return Running // /proc is not for us to see
	case proc.ended, p.head.StartTicks != 0 && proc.startTicks != p.head.StartTicks:
		return Killed
	case !proc.leaderOnly && !p.mapped():
		return Replaced
	}
	return Running
}

// process is what /proc/PID/stat says.
type process struct {
	ended      bool // it waits for its parent to notice
	leaderOnly bool // its first thread has ended, others run: it shows no maps
	startTicks uint64
}

func processOf(pid int) (p process, ok bool) {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return p, false
	}
	return parseStat(string(line))
}

// parseStat reads the text of a stat file (proc_pid_stat(5)): the name, which may hold
// anything, ends with the last parenthesis, and the state is the third field.
func parseStat(line string) (p process, ok bool) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const first, threads, start = 3, 20 - 3, 22 - 3
	if len(fields) <= start {
		return p, false
	}
	p.startTicks, _ = strconv.ParseUint(fields[start], 10, 64)
	if fields[0] == "Z" || fields[0] == "X" {
		n, _ := strconv.Atoi(fields[threads])
		p.leaderOnly = n > 1
		p.ended = !p.leaderOnly
	}
	return p, true
}

// mapped reports whether the process has the page's file in its memory, or that it
// cannot be told.
func (p *Page) mapped() bool {
	maps, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.Pid()), "maps"))
	if err != nil || len(maps) == 0 {
		return true
	}
	return mapsHave(maps, strconv.FormatUint(p.stat.Ino, 10), filepath.Base(p.path))
}

// mapsHave looks for a file by its inode and, for file systems that show another one
// there (overlayfs), by its name.
func mapsHave(maps []byte, inode, base string) bool {
	for line := range bytes.Lines(maps) {
		f := bytes.Fields(line) // range, rights, offset, device, inode, path
		if len(f) < 6 {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), " (deleted)")
		if string(f[4]) == inode || strings.HasSuffix(name, "/"+base) {
			return true
		}
	}
	return false
}

func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

func pidNamespace() uint64 {
	info, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// text is the string up to the first zero byte.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
