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

// State says whether a page's process runs, and how it ended if it does not.
type State int

// The states of a process.
const (
	Running  State = iota
	Exited         // it ended and marked the page: the figures are final
	Killed         // it ended without marking the page, by a signal or a restart of the machine
	Replaced       // it runs another program (execve), which does not update the page
	Unknown        // it is in another PID namespace, which cannot be examined from here
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

// Dead reports whether the page will never be updated again.
func (s State) Dead() bool { return s == Exited || s == Killed || s == Replaced }

// State returns the state of the page's process now.
func (p *Page) State() State {
	s := p.look()
	// Read the mark last: the process may have ended meanwhile.
	if v, err := p.word(stateAt); err == nil && v == stats.LiveExited {
		return Exited
	}
	return s
}

// look determines the state from the system. If Mapped found the page, its process has it mapped
// and runs. Any other page may name any process, so look checks that process.
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
		return Running // /proc is hidden from us
	case proc.ended, p.head.StartTicks != 0 && proc.startTicks != p.head.StartTicks:
		return Killed
	case !proc.leaderOnly && !p.mapped():
		return Replaced
	}
	return Running
}

// process is what /proc/PID/stat says.
type process struct {
	ended      bool // a zombie
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

// parseStat parses the text of a stat file (proc_pid_stat(5)). The name may hold any characters and
// ends at the last parenthesis; the state is the third field.
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

// mapped reports whether the process has the page's file mapped. It answers true when that cannot
// be found out.
func (p *Page) mapped() bool {
	maps, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.Pid()), "maps"))
	if err != nil || len(maps) == 0 {
		return true
	}
	return mapsHave(maps, strconv.FormatUint(p.stat.Ino, 10), filepath.Base(p.path))
}

// mapsHave looks for a file by its inode. File systems such as overlayfs show another inode in
// maps, so it also looks for the name.
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
