package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// With TA_STATS_LIVE=1, pages are in this folder, named after their processes' numbers.
const (
	UsualFolder = "/dev/shm"
	usualPrefix = "tieralloc."

	badNamed = 10 // pages of other users that an error names
)

// Folder is an open folder. Names are looked up in the folder that was opened, even if its path
// names another one by now.
type Folder struct {
	file *os.File
	path string
}

// OpenFolder opens the folder at path.
func OpenFolder(path string) (*Folder, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &Folder{file, path}, nil
}

// Close closes the folder. Pages opened in it stay open, but can no longer be removed.
func (d *Folder) Close() error { return d.file.Close() }

// Open opens the live page that has the name in the folder. It does not follow a symbolic link.
func (d *Folder) Open(name string) (*Page, error) {
	p, err := openAt(int(d.file.Fd()), name, filepath.Join(d.path, name), unix.O_NOFOLLOW)
	if p != nil {
		p.folder = d
	}
	return p, err
}

// OpenUsual opens the page of process pid by its usual name.
func (d *Folder) OpenUsual(pid int) (*Page, error) {
	p, err := d.Open(usualPrefix + strconv.Itoa(pid))
	if err == nil && p.Pid() != pid {
		p.Close()
		return nil, fmt.Errorf("%s: damaged live page: it is process %d's", p.path, p.head.Pid)
	}
	return p, err
}

// Usual calls use for each page of the folder that has a usual name, those of this user first. It
// opens one at a time. It skips files that are not pages, and files of other users, which it may
// not read. The error names pages that are damaged or of another version.
//
// Anyone may put any number of files there. So Usual opens at most limit files of each other user,
// the newest, and ten times as many of all other users. The error says how many were left out, and
// names badNamed damaged ones of others. If limit is 0, it opens all. It does not open those that
// known says are known, if that is not nil.
func (d *Folder) Usual(limit int, known func(ID) bool, use func(*Page) error) error {
	files, err := d.usualFiles()
	files, leftOut := within(limit, files)
	bad := []error{err}
	theirs := 0
	for _, f := range files {
		if known != nil && known(f.id) {
			continue
		}
		p, err := d.OpenUsual(f.pid)
		switch {
		case err == nil:
			bad = append(bad, use(p))
			p.Close()
		case errors.Is(err, ErrNotPage), errors.Is(err, os.ErrNotExist),
			errors.Is(err, os.ErrPermission):
		case f.own():
			bad = append(bad, err)
		default:
			if theirs++; theirs <= badNamed {
				bad = append(bad, err)
			}
		}
	}
	if theirs > badNamed {
		bad = append(bad, fmt.Errorf("%s: %d more pages of other users are damaged or of another "+
			"version", d.path, theirs-badNamed))
	}
	if leftOut > 0 {
		bad = append(bad, fmt.Errorf("%s: %d files of other users were left out: only the newest"+
			" %d of a user are read, and %d of all", d.path, leftOut, limit, allLimits*limit))
	}
	return errors.Join(bad...)
}

// Remove removes the page's file from the folder in which it was opened. It refuses unless the name
// still belongs to the same file of the same owner and the process has ended.
func (p *Page) Remove() error {
	if p.folder == nil {
		return fmt.Errorf("%s: not removed: it was not looked up in a folder", p.path)
	}
	if s := p.State(); !s.Dead() {
		return fmt.Errorf("%s: not removed: its process is %v", p.path, s)
	}
	dir, name := int(p.folder.file.Fd()), filepath.Base(p.path)
	var now unix.Stat_t
	if err := unix.Fstatat(dir, name, &now, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "remove", Path: p.path, Err: err}
	}
	if now.Dev != p.stat.Dev || now.Ino != p.stat.Ino || now.Uid != p.stat.Uid {
		return fmt.Errorf("%s: not removed: another file has taken its place", p.path)
	}
	if err := unix.Unlinkat(dir, name, 0); err != nil {
		return &os.PathError{Op: "remove", Path: p.path, Err: err}
	}
	return nil
}
