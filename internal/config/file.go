package config

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// FilePath is the path of the file of settings for the whole system. In the library
// interpose/boot_config.c opens it.
//
//	file = { line "\n" }
//	line = blanks | blanks "#" text | NAME "=" value
//
// Blanks around a name and a value are ignored. A value may be in quotes, single or double. A line
// without = is ignored. The environment has precedence over the file. If a name occurs twice in the
// file, the first counts.
const FilePath = "/etc/tieralloc.conf"

// FileMax is the size of the longest file that is read, in bytes.
const FileMax = 64 << 10

// FileFlaw is the reason why the whole file is ignored.
type FileFlaw uint32

const (
	FileGood FileFlaw = iota
	FileNotRegular
	FileOwner
	FileWritable
	FileTooBig
	FileNotText
	FileUnread // it cannot be read, or there is no memory to do so
)

// Merged is an environment followed by the lines of the file, as C strings.
type Merged struct {
	Envp uintptr // a vector such as Parse takes; 0: there is a flaw
	Flaw FileFlaw
	size uintptr // of the mapping, which has room for the largest text and the vector
}

// Drop frees the memory. The settings that Parse has read from it stay valid.
func (m *Merged) Drop() {
	if m.Envp != 0 {
		raw.Unmap(m.Envp-fileRoom, m.size)
		m.Envp = 0
	}
}

// fileRoom is the offset of the vector: after the text and one more byte, by which a file that is
// too long is detected.
const fileRoom = FileMax + raw.Page

// ReadFile reads the file that fd is open on, and closes fd. The environment at envp, which may be
// 0, comes first. secure is AT_SECURE. If it is set, only those settings of the file count that
// make the library do less; the path of a report, for example, does not.
func ReadFile(fd, envp uintptr, secure bool) (m Merged) {
	entries := countEntries(envp)
	m.Flaw = judgeFile(fd)
	if m.Flaw == FileGood {
		// a line of the file has at least two bytes
		m.size = raw.RoundUp(fileRoom+8*(entries+FileMax/2+2), raw.Page)
		text := raw.Map(m.size)
		n := uintptr(0)
		n, m.Flaw = readText(fd, text)
		if m.Flaw == FileGood {
			m.Envp = text + fileRoom
			m.fill(text, n, envp, secure)
		} else if text != 0 {
			raw.Unmap(text, m.size)
		}
	}
	raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	return m
}

func countEntries(envp uintptr) (n uintptr) {
	for envp != 0 && raw.Load(envp+8*n) != 0 {
		n++
	}
	return n
}

// judgeFile checks whether the file may hold settings for every program: it belongs to root, and
// nobody else can write to it.
func judgeFile(fd uintptr) FileFlaw {
	const writable = 0o022 // for its group and for others
	var st syscall.Stat_t
	_, errno := raw.Sys(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
	switch {
	case errno != 0:
		return FileUnread
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return FileNotRegular
	case st.Uid != 0:
		return FileOwner
	case st.Mode&writable != 0:
		return FileWritable
	case st.Size > FileMax:
		return FileTooBig
	}
	return FileGood
}

// readText reads the file to text, which may be 0. Some kinds of files have no size before they are
// read, so it checks the length again.
func readText(fd, text uintptr) (n uintptr, flaw FileFlaw) {
	if text == 0 {
		return 0, FileUnread
	}
	for n <= FileMax {
		got, errno := raw.Sys(syscall.SYS_READ, fd, text+n, FileMax+1-n, 0, 0, 0)
		if errno != 0 {
			return 0, FileUnread
		}
		if got == 0 {
			break
		}
		n += got
	}
	if n > FileMax {
		return 0, FileTooBig
	}
	for i := uintptr(0); i < n; i++ {
		if raw.LoadByte(text+i) == 0 {
			return 0, FileNotText
		}
	}
	return n, FileGood
}

// fill makes the vector. An entry is not longer than its line, and overwrites it.
func (m *Merged) fill(text, n, envp uintptr, secure bool) {
	slot, free := m.Envp, text
	for ; envp != 0 && raw.Load(envp) != 0; envp += 8 {
		raw.Store(slot, raw.Load(envp))
		slot += 8
	}
	all := value{text, n}
	for i := uintptr(0); i < n; {
		end := all.find(i, '\n')
		line := all.part(i, end).trim()
		i = end + 1
		if line.n == 0 || line.at(0) == '#' {
			continue
		}
		entry := free
		free = putEntry(free, line)
		if secure {
			if k, _ := find(entry); k != varOnly && k != varDisable {
				free = entry
				continue
			}
		}
		raw.Store(slot, entry)
		slot += 8
	}
	raw.Store(slot, 0)
}

// putEntry writes a line at to, as NAME=value and a zero, and returns the end.
func putEntry(to uintptr, line value) (end uintptr) {
	equals := line.find(0, '=')
	to = putText(to, line.part(0, equals).trim())
	if equals < line.n {
		raw.StoreByte(to, '=')
		to = putText(to+1, line.part(equals+1, line.n).trim().unquote())
	}
	raw.StoreByte(to, 0)
	return to + 1
}

// putText moves the text to an address at or below its own.
func putText(to uintptr, v value) (end uintptr) {
	for i := uintptr(0); i < v.n; i++ {
		raw.StoreByte(to+i, v.at(i))
	}
	return to + v.n
}

// unquote returns the value without the quotes around it.
func (v value) unquote() value {
	if v.n < 2 || v.at(0) != v.at(v.n-1) || v.at(0) != '"' && v.at(0) != '\'' {
		return v
	}
	return v.part(1, v.n-1)
}
