package process

import (
	"testing"

	"tieralloc/internal/testlib"
)

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
