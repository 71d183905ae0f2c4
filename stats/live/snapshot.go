package live

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"tieralloc/stats"
	"tieralloc/stats/document"
)

// Snapshot is what a page said at one moment.
type Snapshot struct {
	stats.Figures

	State   State
	Updates uint64    // updates so far; 0: only Pid, Program and StartUnixNs are set
	At      time.Time // when they were true, by the writer's clock
}

// attempts is the number of times that Snapshot reads a page that changes during each read. A
// writer updates it ten times a second at most, and a read takes some microseconds.
const attempts = 100

// Offsets in the file.
const (
	stateAt     = unsafe.Offsetof(stats.LivePage{}.Head) + unsafe.Offsetof(stats.LiveHeader{}.State)
	begunAt     = unsafe.Offsetof(stats.LivePage{}.Head) + unsafe.Offsetof(stats.LiveHeader{}.Begun)
	publishedAt = unsafe.Offsetof(stats.LivePage{}.Head) +
		unsafe.Offsetof(stats.LiveHeader{}.Published)
	buffersAt  = unsafe.Offsetof(stats.LivePage{}.Buffers)
	bufferSize = unsafe.Sizeof(stats.LiveBuffer{})
	figuresAt  = unsafe.Offsetof(stats.LiveBuffer{}.Figures)
	unixNsAt   = unsafe.Offsetof(stats.LiveBuffer{}.UnixNs)
)

// Snapshot reads the last complete update.
func (p *Page) Snapshot() (*Snapshot, error) {
	s := new(Snapshot)
	if err := p.Read(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Read sets s to the last complete update. After an error s may hold anything.
func (p *Page) Read(s *Snapshot) error {
	if p.other != nil {
		return fmt.Errorf("%s: %w", p.Path(), p.other)
	}
	for range attempts {
		whole, err := p.copyLast(s)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Path(), err)
		}
		if !whole {
			runtime.Gosched()
			continue
		}
		if s.Updates == 0 {
			s.Figures = stats.Figures{Pid: p.head.Pid, StartUnixNs: p.head.StartUnixNs,
				Program: p.head.Program, ProgramLen: p.head.ProgramLen}
			s.At = p.Start()
		}
		s.State = p.State()
		return nil
	}
	return fmt.Errorf("%s: damaged live page: it does not stay still", p.Path())
}

// copyLast copies the current buffer and the number of its update. whole says that no later update
// wrote to the buffer meanwhile; see stats.LiveMagic.
func (p *Page) copyLast(s *Snapshot) (whole bool, err error) {
	updates, err := p.word(publishedAt)
	if err != nil {
		return false, err
	}
	at := buffersAt + uintptr(updates&1)*bufferSize
	if err := p.read(words(&s.Figures), at+figuresAt); err != nil {
		return false, err
	}
	ns, err := p.word(at + unixNsAt)
	if err != nil {
		return false, err
	}
	begun, err := p.word(begunAt)
	if err == nil && begun < updates {
		err = errors.New("damaged live page: more updates were made than begun")
	}
	s.Updates, s.At = updates, time.Unix(0, int64(ns))
	return begun-updates <= 1, err
}

// Age is the time since the update. An idle process does not update its page.
func (s *Snapshot) Age() time.Duration { return max(0, time.Since(s.At)) }

// Name is the file name of the program. It may hold any bytes: escape it before it is printed.
func (s *Snapshot) Name() string {
	return string(s.Program[:min(s.ProgramLen, stats.NameSize)])
}

// JSON is the report in the form in which the library itself writes it.
func (s *Snapshot) JSON() ([]byte, error) {
	size := int(unsafe.Sizeof(stats.Report{}))
	need, err := s.json(nil, size)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, need+1)
	_, err = s.json(buf, size)
	return buf[:need], err
}

// json writes JSON to buf and returns its length. A Report cannot be on Go's heap, so it gets a
// mapping.
func (s *Snapshot) json(buf []byte, size int) (need uintptr, err error) {
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		return 0, err
	}
	r := (*stats.Report)(unsafe.Pointer(&mem[0]))
	r.Figures = s.Figures
	need = document.JSON(uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), r, nil)
	runtime.KeepAlive(buf)
	return need, syscall.Munmap(mem)
}
