package logger

import "syscall"

// sink writes to a descriptor that the host may close or reuse without telling the library: daemons
// close all descriptors. An os.File cannot be used, because its poller would end the process then.
// Before each write the sink checks that the descriptor still names the same file. If not, it
// writes nothing any more.
type sink struct {
	fd       int
	dev, ino uint64
}

// lowest is the lowest number of a sink's descriptor. The host's own descriptors are usually below.
const lowest = 200

// newSink duplicates fd to a high number, or uses fd itself if that fails. owned says that the
// library may close fd.
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

// Write writes one line. It drops what cannot be written and reports no error: nobody could be
// told.
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
