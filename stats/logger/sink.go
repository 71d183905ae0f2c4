package logger

import "syscall"

// sink writes to a descriptor that the host may close, or reuse, behind our back:
// daemons close all they find. So it is no os.File, whose poller would end the
// process over that, and before each write it looks whether the descriptor still is
// what it was. If not, the log is over.
type sink struct {
	fd       int
	dev, ino uint64
}

// lowest is where our descriptors begin, out of the way of the host's.
const lowest = 200

// newSink takes a copy of fd with a high number, or fd itself where there is none to
// be had. owned says that fd is ours to close.
func newSink(fd int, owned bool) *sink {
	high, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC,
		lowest)
	if errno == 0 {
		if owned {
			_ = syscall.Close(fd)
		}
		fd = int(high)
	}
	s := &sink{fd: fd}
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) == nil {
		s.dev, s.ino = st.Dev, st.Ino
	}
	return s
}

// Write writes one line. What cannot be written is dropped: a log has no one to
// complain to.
func (s *sink) Write(line []byte) (int, error) {
	var st syscall.Stat_t
	if syscall.Fstat(s.fd, &st) != nil || st.Dev != s.dev || st.Ino != s.ino {
		return len(line), nil
	}
	for rest := line; len(rest) > 0; {
		n, err := syscall.Write(s.fd, rest)
		switch err {
		case nil:
			rest = rest[n:]
		case syscall.EINTR:
		default:
			return len(line), nil
		}
	}
	return len(line), nil
}
