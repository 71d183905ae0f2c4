// Package live reads the live pages of other processes (stats.LivePage), running or
// dead. It is ordinary Go, for the command-line tool.
//
// Files are read and never mapped: one that its owner cuts short meanwhile is an
// error then, not a SIGBUS. What they say is not trusted; nothing in one can make a
// reader fail in another way than by an error.
package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"tieralloc/stats"
)

// ErrNotPage is what Open's error wraps when the file is something else.
var ErrNotPage = errors.New("not a live page of tieralloc")

// Page is an open live page. Its methods may be used by one goroutine at a time.
type Page struct {
	file *os.File
	head stats.LiveHeader // its lasting part
}

// Open opens the live page at path.
func Open(path string) (*Page, error) {
	// A named pipe must not keep us waiting.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	p := &Page{file: file}
	if err := p.check(); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// check reads the header.
func (p *Page) check() error {
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return ErrNotPage
	}
	var first [3]uint64 // magic, version, size
	if p.read(words(&first), 0) != nil || first[0] != stats.LiveMagic {
		return ErrNotPage
	}
	if first[1] != stats.LiveVersion || first[2] != uint64(stats.LiveSize) {
		return fmt.Errorf("live page of format %d with %d bytes; this program reads format %d with %d bytes:"+
			" use the one that was built with the library", first[1], first[2], stats.LiveVersion, stats.LiveSize)
	}
	if info.Size() != int64(stats.LiveSize) {
		return fmt.Errorf("damaged live page: %d bytes, not %d", info.Size(), stats.LiveSize)
	}
	if err := p.read(words(&p.head), 0); err != nil {
		return err
	}
	if p.head.Pid == 0 || p.head.Pid > math.MaxInt32 || p.head.ProgramLen > stats.NameSize {
		return errors.New("damaged live page: no process has that number or name")
	}
	return nil
}

// Close closes the file. Snapshots stay valid.
func (p *Page) Close() error { return p.file.Close() }

// Path is the name that the page was opened by.
func (p *Page) Path() string { return p.file.Name() }

// Pid is the number of the process, in its own PID namespace.
func (p *Page) Pid() int { return int(p.head.Pid) }

// Program is the file name of the program, as bytes; terminals may not like them.
func (p *Page) Program() string { return string(p.head.Program[:p.head.ProgramLen]) }

// Start is when the process loaded the library, or was forked.
func (p *Page) Start() time.Time { return time.Unix(0, int64(p.head.StartUnixNs)) }

// words are the bytes of a value that consists of integers.
func words[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// read fills dst from the file at offset at.
func (p *Page) read(dst []byte, at uintptr) error {
	_, err := p.file.ReadAt(dst, int64(at))
	if errors.Is(err, io.EOF) {
		return errors.New("live page was cut short")
	}
	return err
}

// word reads one word of the header. The kernel copies an aligned word as one.
func (p *Page) word(at uintptr) (uint64, error) {
	var buf [8]byte
	err := p.read(buf[:], at)
	return binary.NativeEndian.Uint64(buf[:]), err
}

// List opens all live pages in a folder. Files that are none are passed over, and so
// are those that may not be read: they are other users'. Pages that are damaged or of
// another version are in the error, beside which the others are returned.
func List(dir string) ([]*Page, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var pages []*Page
	var bad []error
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		p, err := Open(filepath.Join(dir, e.Name()))
		switch {
		case err == nil:
			pages = append(pages, p)
		case errors.Is(err, ErrNotPage), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		default:
			bad = append(bad, err)
		}
	}
	return pages, errors.Join(bad...)
}
