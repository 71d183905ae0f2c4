package process

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestSyscallStack: the library's syscall, which sees filters of system calls being prepared,
// writes nothing to its caller's stack.
func TestSyscallStack(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "syscallstack.c")
	clean(t, plain(t, prog))
	clean(t, preloaded(t, nil, prog))
}
