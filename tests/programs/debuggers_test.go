package programs

import (
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// TestGDB debugs a small program; gdb and the program are both preloaded. The
// end of the program is logged to /dev/null, because gdb names its process number.
func TestGDB(t *testing.T) {
	testlib.Need(t, "gdb")
	list := testlib.CC(t, "list.c", "-O0")
	args := []string{"gdb", "-nx", "-batch"}
	for _, c := range []string{
		"set startup-with-shell off", "set print inferior-events off",
		"set print thread-events off", "set confirm off", "set print address off",
		"break visit if n->value == 40", "run", "backtrace", "print *n", "print sum",
		"print $_strlen(n->name)",
		"finish", "delete", "list visit", "ptype struct node",
		"set logging file /dev/null", "set logging redirect on", "set logging enabled on",
		"continue", "set logging enabled off",
		"print $_exitcode",
	} {
		args = append(args, "-ex", c)
	}
	runAll(t, []program{{name: "gdb", args: append(args, list), limit: 2 * time.Minute}})
}

// TestValgrind runs a preloaded program in Valgrind's simulator, which knows
// the system calls and instructions of ordinary programs only.
func TestValgrind(t *testing.T) {
	testlib.Need(t, "valgrind")
	list := testlib.CC(t, "list.c")
	runAll(t, []program{
		{name: "own program", args: []string{"valgrind", "-q", "--tool=none", list},
			limit: 2 * time.Minute},
		{name: "sort", args: []string{"valgrind", "-q", "--tool=none", "sort", "-r"},
			stdin: "a\nc\nb\n", limit: 2 * time.Minute},
	})
}

func TestStrace(t *testing.T) {
	testlib.Need(t, "strace")
	list := testlib.CC(t, "list.c")
	runAll(t, []program{
		{name: "strace", args: []string{"strace", "-f", "-qq", "-e", "trace=write", "-e",
			"signal=none", "-o", "trace", list}},
	})
}
