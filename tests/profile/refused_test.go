package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestRefused: where no profile can be taken a line says why, and the program runs as without.
func TestRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heap.pb")
	for _, c := range []struct {
		name, limit, want string
		env               []string
	}{
		{"secure", "", "TA_PROFILE has no effect with TA_SECURE=1", []string{"TA_SECURE=1"}},
		{"folder", "", "cannot write TA_PROFILE /nowhere/heap.pb: error 2 (no such file or " +
			"directory)", []string{"TA_PROFILE=/nowhere/heap.pb"}},
		{"rate", "", `TA_PROFILE_RATE="12": expected auto, or 1K to 1G (bytes, an integer, or one with ` +
			"K, M or G); using auto", []string{"TA_PROFILE_RATE=12"}},
		{"memory", "ulimit -v 16000;", "cannot write TA_PROFILE " + file +
			": error 12 (no memory)", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := testlib.Run(t, testlib.Cmd{
				Args: []string{"sh", "-c", c.limit + ` LD_PRELOAD="$LIBRARY" exec /bin/echo fine`},
				Env: append([]string{"LIBRARY=" + testlib.Lib(t), "TA_PROFILE=" + file},
					c.env...)})
			if res.Status != 0 || res.Stdout != "fine\n" || res.Stderr != "tieralloc: "+c.want+"\n" {
				t.Errorf("it ended with %d, printed %q, and said %q, not %q", res.Status, res.Stdout,
					res.Stderr, c.want)
			}
		})
	}
}

// TestChildren: a forked child writes a profile of its own, which goes on from its parent's.
func TestChildren(t *testing.T) {
	testlib.Need(t, "bash")
	dir := t.TempDir()
	res := testlib.Run(t, testlib.Cmd{Preload: true, Env: []string{"TA_PROFILE_RATE=1K",
		"TA_PROFILE=" + filepath.Join(dir, "heap.pb")},
		Args: []string{"bash", "-c", `x=$(printf %100000s y); (y=$x$x; exit 3); exit 0`}})
	if res.Status != 0 || res.Stderr != "" {
		t.Fatalf("bash ended with %d, standard error %q", res.Status, res.Stderr)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	children := 0
	for _, f := range files {
		p := read(t, filepath.Join(dir, f.Name()))
		if p.comment(t, "samples") == 0 {
			t.Errorf("%s has no samples", f.Name())
		}
		if strings.HasPrefix(f.Name(), "heap.pb.") {
			children++
		}
	}
	if children == 0 || len(files) != children+1 {
		t.Errorf("%v", files)
	}
}
