package live

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tieralloc/stats"
)

// Errors of Ask.
var (
	ErrEnded = errors.New("the process has ended") // or runs another program
	ErrLate  = errors.New("no answer")             // in the time given
)

// askPage is a page that a process is asked by, and where the request is in its file.
type askPage struct {
	*Page
	at uintptr
}

// Offsets in a request, and times.
const (
	askedAt   = unsafe.Offsetof(stats.LiveAsk{}.Asked)
	doneAt    = unsafe.Offsetof(stats.LiveAsk{}.Done)
	askPoll   = 10 * time.Millisecond
	aliveLook = 10 // polls between two looks at the process
)

// Answer is what a process has answered to a request.
type Answer struct {
	Errno syscall.Errno // 0: the file is written; ENODATA: no setting of the process names one
	File  string        // as the process sees it; it may hold any bytes
}

// Ask has the process write a file (stats.AskProfile, …), and waits for that. The page is opened
// for writing meanwhile, which its user and root may do. Errors wrap ErrVersion, ErrEnded, ErrLate
// or os.ErrPermission.
func (page *Page) Ask(what uintptr, wait time.Duration) (Answer, error) {
	return page.ask(what, wait, func(*os.File) error { return nil })
}

// ask is Ask. Before it raises the request, prepare writes to the page what it is about.
func (page *Page) ask(what uintptr, wait time.Duration, prepare func(*os.File) error) (Answer,
	error) {
	p := &askPage{page, unsafe.Offsetof(stats.LivePage{}.Asks) +
		what*unsafe.Sizeof(stats.LiveAsk{})}
	if p.other != nil {
		return Answer{}, fmt.Errorf("%s: %w", p.path, p.other)
	}
	// The file that was checked, wherever its name leads by now.
	file, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(p.file.Fd())), os.O_RDWR, 0)
	if err != nil {
		return Answer{}, fmt.Errorf("%s: cannot be written: %w", p.path, errors.Unwrap(err))
	}
	defer file.Close()
	if err := p.uncut(file); err != nil {
		return Answer{}, p.named(err)
	}
	if err := prepare(file); err != nil {
		return Answer{}, p.named(err)
	}
	mine, err := p.raise(file)
	end := time.Now().Add(wait)
	for n := 0; err == nil; n++ {
		var a Answer
		var done bool
		if a, done, err = p.answered(mine); done || err != nil {
			return a, p.named(err)
		}
		if n%aliveLook == 0 && p.ended() {
			if a, done, _ = p.answered(mine); done { // its last act
				return a, nil
			}
			return Answer{}, p.named(ErrEnded)
		}
		if time.Now().After(end) {
			return Answer{}, p.named(ErrLate)
		}
		time.Sleep(askPoll)
		// Another one may have set it back.
		var asked uint64
		if asked, err = p.word(p.at + askedAt); err == nil && int64(asked-mine) < 0 {
			err = p.store(file, mine)
		}
	}
	return Answer{}, p.named(err)
}

func (p *Page) named(err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", p.path, err)
	}
	return err
}

// raise makes the request and returns its number.
func (p *askPage) raise(file *os.File) (mine uint64, err error) {
	asked, err := p.word(p.at + askedAt)
	if err != nil {
		return 0, err
	}
	return asked + 1, p.store(file, asked+1)
}

// store writes the request, unless the file was cut short.
func (p *askPage) store(file *os.File, asked uint64) error {
	if err := p.uncut(file); err != nil {
		return err
	}
	_, err := file.WriteAt(words(&asked), int64(p.at+askedAt))
	return err
}

// uncut returns an error if the file was cut short.
func (p *askPage) uncut(file *os.File) error {
	var now unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &now); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if now.Size != p.stat.Size {
		return errors.New("live page was cut short")
	}
	return nil
}

// answered returns the answer to the request mine or a later one, if there is one. Numbers wrap
// around.
func (p *askPage) answered(mine uint64) (a Answer, done bool, err error) {
	for range attempts {
		before, err := p.word(p.at + doneAt)
		if err != nil || int64(before-mine) < 0 {
			return a, false, err
		}
		var ask stats.LiveAsk
		if err := p.read(words(&ask), p.at); err != nil {
			return a, false, err
		}
		after, err := p.word(p.at + doneAt)
		if err != nil {
			return a, false, err
		}
		if ask.PathLen > uint64(len(ask.Path)) {
			return a, false, errors.New("damaged live page: no path is so long")
		}
		if ask.PathLen == 0 && ask.Errno == 0 {
			return a, false, nil // no answer is so: there was none yet, whatever a stranger wrote
		}
		if before == after {
			a = Answer{syscall.Errno(ask.Errno), string(ask.Path[:ask.PathLen])}
			return a, true, nil
		}
	}
	return a, false, errors.New("damaged live page: its answer does not stay still")
}

// ended reports whether the process will answer no more.
func (p *Page) ended() bool {
	if p.holder == 0 || p.State() != Running {
		return p.State().Dead()
	}
	proc, ok := processOf(p.holder)
	if !ok {
		return syscall.Kill(p.holder, 0) == syscall.ESRCH
	}
	return proc.ended || !proc.leaderOnly && !p.mapped()
}
