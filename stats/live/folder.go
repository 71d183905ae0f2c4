package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// With TA_STATS_LIVE=1, pages are in this folder, named after their processes' numbers.
const (
	UsualFolder = "/dev/shm"
	usualPrefix = "tieralloc."
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

// Usual calls use for each page of the folder that has a usual name. It opens one at a time,
// because anyone may put any number of files there. It skips files that are not pages, and files of
// other users, which it may not read. The error names pages that are damaged or of another version.
func (d *Folder) Usual(use func(*Page) error) error {
	names, err := d.file.Readdirnames(-1)
	bad := []error{err}
	for _, name := range names {
		pid, err := strconv.Atoi(strings.TrimPrefix(name, usualPrefix))
		if err != nil || name != usualPrefix+strconv.Itoa(pid) {
			continue
		}
		p, err := d.OpenUsual(pid)
		switch {
		case err == nil:
			bad = append(bad, use(p))
			p.Close()
		case errors.Is(err, ErrNotPage), errors.Is(err, os.ErrNotExist),
			errors.Is(err, os.ErrPermission):
		default:
			bad = append(bad, err)
		}
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
