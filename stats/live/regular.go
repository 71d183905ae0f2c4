package live

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNotRegular is what OpenRegular's error wraps when the file is a folder, a pipe, a
// terminal or the like.
var ErrNotRegular = errors.New("a file is wanted, and this is none")

// OpenRegular opens the regular file that name is in the folder of the descriptor dir, to
// read it. path is what messages call it. flags are more flags for the look-up.
//
// To open a pipe or a device may wait, or do something. So the name only leads to a
// descriptor that nothing was opened by; that file, and no other that has the name
// meanwhile, is opened if it is a regular one. A lease on it is an error, not a wait.
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
