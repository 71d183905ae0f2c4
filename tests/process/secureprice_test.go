package process

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// TestSecurePrice: with TA_SECURE=1 a pair of malloc and free of a small block takes no more than 40 times the default's
// processor time. The slow path alone takes some 70 to 100 times.
func TestSecurePrice(t *testing.T) {
	prog := testlib.CC(t, "pairs.c", "-fno-builtin")
	for _, n := range []int{16, 1000} {
		plain, secure := pairTime(t, prog, n, 20_000_000, "TA_SECURE=0"), pairTime(t, prog, n, 1_000_000, "TA_SECURE=1")
		if secure*20 > plain*40 {
			t.Errorf("%d bytes: %v for 1 million pairs, %v for 20 million by default", n, secure, plain)
		}
	}
}

// pairTime is the processor time of a process with so many pairs of n bytes.
func pairTime(t *testing.T, prog string, n, pairs int, env string) time.Duration {
	t.Helper()
	c := exec.Command(prog, fmt.Sprint(n), fmt.Sprint(pairs))
	c.Env = append(os.Environ(), "LD_PRELOAD="+testlib.Lib(t), env)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
}
