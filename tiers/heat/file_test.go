package heat

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenHigh: a descriptor is out of the way of those that the program opens and closes, and no
// other program inherits it.
func TestOpenHigh(t *testing.T) {
	fd, err := open(smaps, unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if fd < high || err != nil || flags != unix.FD_CLOEXEC {
		t.Errorf("descriptor %d with flags %#x, %v", fd, flags, err)
	}
}
