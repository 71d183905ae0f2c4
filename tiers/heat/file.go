package heat

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// open opens a file of the kernel's. The error names it.
func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err == nil {
			return outOfTheWay(fd), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fd, named(path, err)
		}
	}
}

// high is the least number that a descriptor has here.
const high = 512

// outOfTheWay gives a descriptor a high number. A program that closes all descriptors and opens
// others gets the lowest numbers for them, so the descriptors read and closed here are not its own.
func outOfTheWay(fd int) int {
	up, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, high)
	if err != nil { // by a low limit
		return fd
	}
	unix.Close(fd)
	return up
}

// named is an error with the name of the file that gave it.
func named(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// readWord is what a small file says, without the blanks around it.
func readWord(path string) (string, error) {
	var word strings.Builder
	err := readBlocks(path, make([]byte, 4096), func(block []byte) { word.Write(block) })
	return strings.TrimSpace(word.String()), err
}

// readBlocks passes a file on, as much of it at a time as the kernel gives for the buffer.
func readBlocks(path string, buf []byte, pass func([]byte)) error {
	fd, err := open(path, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return named(path, err)
		case n == 0:
			return nil
		default:
			pass(buf[:n])
		}
	}
}

// write writes a word into a file.
func write(path, word string) error {
	fd, err := open(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		_, err = unix.Write(fd, []byte(word))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("%s: %q refused: %w", path, word, err)
		}
	}
}

// needing says in an error what is needed: a right, or something of the kernel.
func needing(err error, right, kernel string) error {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: %s is needed", err, right)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: %s is needed", err, kernel)
	}
	return err
}

// needingProc is needing for the files of the own process. They are root's where the process is
// closed to inspection, as one that changed its user is.
func needingProc(err error) error {
	return needing(err, "a process open to inspection (PR_SET_DUMPABLE)",
		"a mounted /proc and a kernel with CONFIG_PROC_PAGE_MONITOR")
}
