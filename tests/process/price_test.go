package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"tieralloc/internal/testlib"
)

// TestSecurePrice: with TA_SECURE=1 a pair of malloc and free of a small block takes no more than
// 1,200 instructions. The slow path alone takes some 4,500.
func TestSecurePrice(t *testing.T) {
	testlib.Need(t, "valgrind")
	prog := testlib.CC(t, "pairs.c", "-fno-builtin")
	for _, n := range []int{16, 200, 1000} {
		if each := instructions(t, []string{"TA_SECURE=1"}, prog, n); each > 1200 {
			t.Errorf("%d bytes: %d instructions a pair", n, each)
		}
	}
}

// TestAlignedPrice: the fast path serves aligned blocks, whether those of their class are spread or
// not.
func TestAlignedPrice(t *testing.T) {
	testlib.Need(t, "valgrind")
	prog := testlib.CC(t, "alignedpairs.c", "-fno-builtin")
	for _, n := range []int{100, 1100, 5000, 100_000} {
		for _, align := range []int{64, 128, 4096} {
			if each := instructions(t, nil, prog, align, n); each > 200 {
				t.Errorf("%d bytes at a multiple of %d: %d instructions a pair", n, align, each)
			}
		}
	}
}

// instructions is how many each further call takes of those that a program makes. Its last argument
// is their number.
func instructions(t *testing.T, env []string, prog string, args ...int) int {
	t.Helper()
	const calls = 20_000
	return (instructionsOf(t, env, prog, append(args, 2*calls)) -
		instructionsOf(t, env, prog, append(args, calls))) / calls
}

func instructionsOf(t *testing.T, env []string, prog string, args []int) int {
	t.Helper()
	c := exec.Command("valgrind", "--tool=callgrind",
		"--callgrind-out-file="+filepath.Join(t.TempDir(), "out"), prog)
	for _, a := range args {
		c.Args = append(c.Args, fmt.Sprint(a))
	}
	c.Env = append(append(os.Environ(), "LD_PRELOAD="+testlib.Lib(t)), env...)
	out, err := c.CombinedOutput()
	found := regexp.MustCompile(`Collected : (\d+)`).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v: %s", err, out)
	}
	count, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return count
}
