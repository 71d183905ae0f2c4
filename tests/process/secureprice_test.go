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
		const pairs = 20_000
		if each := (instructions(t, prog, n, 2*pairs) - instructions(t, prog, n,
			pairs)) / pairs; each > 1200 {
			t.Errorf("%d bytes: %d instructions a pair", n, each)
		}
	}
}

// instructions is how many a process runs with so many pairs of n bytes.
func instructions(t *testing.T, prog string, n, pairs int) int {
	t.Helper()
	c := exec.Command("valgrind", "--tool=callgrind",
		"--callgrind-out-file="+filepath.Join(t.TempDir(), "out"), prog, fmt.Sprint(n),
		fmt.Sprint(pairs))
	c.Env = append(os.Environ(), "LD_PRELOAD="+testlib.Lib(t), "TA_SECURE=1")
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

// TestSecureTiers: with TA_SECURE=1 blocks are counted for the tier that they lie in, after the
// hint has changed and beyond a soft cap, and realloc keeps the hint of a block.
func TestSecureTiers(t *testing.T) {
	prog := testlib.CC(t, "securetiers.c", "-fno-builtin")
	for _, env := range []string{"TA_SECURE=0", "TA_SECURE=1"} {
		r := testlib.Run(t, testlib.Cmd{Args: []string{prog},
			Env: []string{env, "TA_NORMAL_SOFT=64K"}, Preload: true})
		if r.Status != 0 {
			t.Errorf("%s: %+v", env, r)
		}
	}
}
