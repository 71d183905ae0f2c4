// Package live reads the live pages of other processes (stats.LivePage), running or dead. It is
// ordinary Go, for the command-line tool.
//
// Files are read and never mapped: if the owner truncates one meanwhile, the reader gets an error
// and not a SIGBUS. Their contents are not trusted: any contents lead to a result or an error.
//
// A page's place is not trusted either. A page counts if its process has it mapped (Mapped), or if
// it has the usual name in the usual folder (Usual).
package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tieralloc/stats"
)

// Open's error wraps ErrNotPage when the file is not a live page.
var ErrNotPage = errors.New("not a live page of tieralloc")

// Snapshot's error wraps ErrVersion when another version wrote the page.
var ErrVersion = errors.New("use the one that was built with the library")

// Page is an open live page. Its methods may be used by one goroutine at a time.
type Page struct {
	file   *os.File
	path   string
	stat   unix.Stat_t      // of the file, when it was opened
	head   stats.LiveHeader // the fields that never change
	other  error            // set when another version wrote the page: its figures cannot be read
	holder int              // the process that has it mapped; 0: not known
	folder *Folder          // where its name was looked up; nil: not in a Folder
}

// Open opens the live page at path and follows symbolic links.
func Open(path string) (*Page, error) { return openAt(unix.AT_FDCWD, path, path, 0) }

// openAt opens the live page called name in the folder dir, a descriptor. Messages call it path.
// flags are added to those of the look-up.
func openAt(dir int, name, path string, flags int) (*Page, error) {
	file, err := OpenRegular(dir, name, path, flags)
	if errors.Is(err, ErrNotRegular) {
		err = fmt.Errorf("%s: %w", path, ErrNotPage)
	}
	if err != nil {
		return nil, err
	}
	p := &Page{file: file, path: path}
	if err := p.check(); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// check reads the header.
func (p *Page) check() error {
	if err := unix.Fstat(int(p.file.Fd()), &p.stat); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	var first [3]uint64 // magic, version, size
	if p.read(words(&first), 0) != nil || first[0] != stats.LiveMagic {
		return ErrNotPage
	}
	if first[1] != stats.LiveVersion || !isSize(first[2]) {
		p.other = fmt.Errorf("live page of format %#x with %d bytes; this program reads format %#x"+
			" with %d bytes: %w", first[1], first[2], stats.LiveVersion, stats.LiveSize, ErrVersion)
	}
	if uint64(p.stat.Size) != first[2] {
		return fmt.Errorf("damaged live page: %d bytes, not %d", p.stat.Size, first[2])
	}
	if err := p.read(words(&p.head), 0); err != nil {
		return err
	}
	if p.head.Pid == 0 || p.head.Pid > math.MaxInt32 || p.head.ProgramLen > stats.NameSize {
		return errors.New("damaged live page: no process has that number or name")
	}
	return nil
}

// isSize reports whether a file of so many bytes may be a page of this version.
func isSize(n uint64) bool {
	return n == uint64(stats.LiveSize) || n == uint64(stats.LiveSize+stats.LiveHistorySize)
}

// Close closes the file. Snapshots stay valid.
func (p *Page) Close() error { return p.file.Close() }

// Path is the path that the page was opened by. It may hold any bytes: escape it before it is
// printed.
func (p *Page) Path() string { return p.path }

// Pid is the number of the page's process: as seen from here if Mapped found the page, else as the
// page says, which is the number in the process's own PID namespace.
func (p *Page) Pid() int {
	if p.holder != 0 {
		return p.holder
	}
	return int(p.head.Pid)
}

// Mapped reports whether the page was found in the memory of its process, which therefore runs.
func (p *Page) Mapped() bool { return p.holder != 0 }

// Owner is the number of the user who owns the file.
func (p *Page) Owner() int { return int(p.stat.Uid) }

// ID identifies the file while the page is open.
func (p *Page) ID() ID { return ID{p.stat.Dev, p.stat.Ino} }

// ID is a file's device and inode.
type ID struct{ dev, ino uint64 }

// Program is the file name of the program. It may hold any bytes: escape it before it is printed.
func (p *Page) Program() string { return string(p.head.Program[:p.head.ProgramLen]) }

// Start is when the process loaded the library, or was forked.
func (p *Page) Start() time.Time { return time.Unix(0, int64(p.head.StartUnixNs)) }

// words returns the bytes of a value that consists of integers.
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
