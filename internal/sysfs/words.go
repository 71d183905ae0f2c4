package sysfs

import (
	"syscall"

	"tieralloc/internal/raw"
)

// OpenName opens the file whose name is the C string at addr. If it reports true the caller closes
// it.
func (f *File) OpenName(addr uintptr) bool {
	f.at, f.n, f.bad = 0, 0, false
	fd, errno := raw.Sys(syscall.SYS_OPENAT, raw.AtFdCwd, addr, syscall.O_RDONLY|syscall.O_CLOEXEC,
		0, 0, 0)
	f.fd = fd
	return errno == 0
}

// Next reads the next byte, 0 at the end.
func (f *File) Next() (c byte) {
	if c = f.peek(); c != 0 {
		f.skip()
	}
	return c
}

// Word is a short word of a text.
type Word struct {
	n   uintptr
	buf [32]byte
}

// Read reads a word up to one of two bytes or the end of the line, and skips that byte. It keeps
// the beginning of a word that is too long. It returns the byte that ended the word, 0 at the end
// of the text.
func (w *Word) Read(f *File, end, other byte) (last byte) {
	w.n = 0
	for {
		c := f.Next()
		if c == end || c == other || c == '\n' || c == 0 {
			return c
		}
		if w.n < 32 {
			w.buf[w.n&31] = c
			w.n++
		}
	}
}

// Is reports whether the word is s.
func (w *Word) Is(s string) bool {
	if w.n != uintptr(len(s)) {
		return false
	}
	for i := 0; i < len(s) && i < 32; i++ {
		if w.buf[i&31] != s[i] {
			return false
		}
	}
	return true
}

// Line skips the rest of a line.
func (f *File) Line() { f.line() }
