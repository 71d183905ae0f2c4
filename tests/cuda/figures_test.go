package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestFigures: ta_cuda_get_stats, and what is told of frees of what is no block: errno, a line of
// the log for each, and the count.
func TestFigures(t *testing.T) {
	program := cc(t, "figures.c")
	for _, c := range []struct {
		name, stdout string
		env          []string
		lines        int
	}{
		{"stats", "", []string{"TA_CUDA_SEGMENT_SIZE=20M"}, 0},
		{"frees", "live 0 invalid 6\n", nil, 8},
		{"frees", "live 0 invalid 6\n", []string{"TA_CUDA_REUSE=event"}, 8},
		{"off", "", []string{"TA_CUDA=0"}, 0},
		{"off", "", []string{"TA_DISABLE=1"}, 0},
	} {
		t.Run(strings.Join(append([]string{c.name}, c.env...), "/"), func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			r := testlib.Run(t, command(true, append(c.env, "TA_LOG=warn", "TA_LOG_FILE="+log),
				program, c.name))
			clean(t, r)
			if r.Stdout != c.stdout {
				t.Errorf("stdout %q, want %q", r.Stdout, c.stdout)
			}
			text, _ := os.ReadFile(log) // there is none without a line
			if n := strings.Count(string(text),
				`"message":"invalid free: not a block of a device"`); n != c.lines {
				t.Errorf("%d lines, want %d: %s", n, c.lines, text)
			}
			if c.lines != 0 && !strings.Contains(string(text), `"address":"0x1000","error":1,`) {
				t.Errorf("the log does not tell which: %s", text)
			}
		})
	}
}
