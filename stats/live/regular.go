package live

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// OpenRegular's error wraps ErrNotRegular when the file is a folder, a pipe, a terminal or the
// like.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens the regular file called name in the folder dir, a descriptor, for reading.
// Messages call it path. flags are added to those of the look-up.
//
// Opening a pipe or a device may block or have effects. So the name is first opened with O_PATH,
// which only identifies the file. If it is regular, that file is opened through /proc, even if
// another has the name by now. A lease on the file gives an error; the call does not wait for it.
func OpenRegular(dir int, name, path string, flags int) (*os.File, error) {
	found, err := unix.Openat(dir, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(found)
	var st unix.Stat_t
	if err := unix.Fstat(found, &st); err != nil {
		return nil, &os.PathError{Op: "fstat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	const reading = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(found), reading, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
