package stats

import (
	"syscall"
	"tieralloc/internal/raw"
	"unsafe"
)

// fill sets the fields of the header that never change, except the magic number, and the state.
func (h *LiveHeader) fill(size uintptr, pid, startUnixNs uint64, program, programLen uintptr) {
	h.Version = LiveVersion
	h.Size = uint64(size)
	h.Pid = pid
	h.StartUnixNs = startUnixNs
	h.StartTicks = startTicks()
	h.PidNamespace = pidNamespace()
	// 36 of 40 bytes: the last bytes stay zero and end the text.
	raw.ReadFile(raw.Bytes("/proc/sys/kernel/random/boot_id\x00"),
		uintptr(unsafe.Pointer(&h.BootID)), 36)
	if programLen > NameSize {
		programLen = NameSize
	}
	for i := uintptr(0); i < programLen; i++ {
		h.Program[i&(NameSize-1)] = raw.LoadByte(program + i)
	}
	h.ProgramLen = uint64(programLen)
	h.State = LiveRunning
}

// pidNamespace returns the inode of the process's PID namespace, or 0.
func pidNamespace() uint64 {
	var st syscall.Stat_t
	_, errno := raw.Sys(syscall.SYS_NEWFSTATAT, raw.AtFdCwd, raw.Bytes("/proc/self/ns/pid\x00"),
		uintptr(unsafe.Pointer(&st)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return st.Ino
}

// Blanks separate the fields of /proc/PID/stat. The second is a name in parentheses, which may hold
// any characters (proc_pid_stat(5)). The 22nd is the start time of the process. The fields up to it
// take less than statRoom bytes.
const (
	statRoom  = 512
	statStart = 22
)

// startTicks returns the start time of the process in clock ticks since the kernel started, or 0.
func startTicks() uint64 {
	var buf [statRoom]byte
	n := raw.ReadFile(raw.Bytes("/proc/self/stat\x00"), uintptr(unsafe.Pointer(&buf)), statRoom)
	return ticksIn(&buf, n)
}

// ticksIn returns the 22nd field of the n bytes of a stat file.
func ticksIn(buf *[statRoom]byte, n uintptr) (ticks uint64) {
	field, i := 0, uintptr(0)
	for k := uintptr(0); k < n; k++ {
		if buf[k&(statRoom-1)] == ')' { // the last one ends the name
			field, i = 2, k+1
		}
	}
	for ; i < n && field != 0; i++ {
		c := buf[i&(statRoom-1)]
		switch {
		case c == ' ' && field == statStart:
			return ticks
		case c == ' ':
			field++
		case field == statStart && c >= '0' && c <= '9':
			ticks = ticks*10 + uint64(c-'0')
		}
	}
	return 0
}
