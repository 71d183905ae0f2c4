package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// TestPackages installs the packages in Debian 12 and 13 without Go and gcc, uses them, and removes
// them again.
func TestPackages(t *testing.T) {
	asked(t)
	first := sources(t)[0]
	root := testlib.Root()
	made := testlib.Run(t, testlib.Cmd{Args: []string{filepath.Join(root, "build.sh"), "package"},
		Timeout: 10 * time.Minute})
	if made.Status != 0 {
		t.Fatalf("./build.sh package: %+v", made)
	}
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			r := newRoot(t, []source{{first.uri, suite, first.components}}, "man-db",
				"python3-venv")
			packages := filepath.Join(r.dir, "tests/packages")
			if err := os.CopyFS(packages, os.DirFS(filepath.Join(root,
				"build/packages"))); err != nil {
				t.Fatal(err)
			}
			r.write("tests/example.py", read(t, filepath.Join(root,
				"tests/python/testdata/example.py")), 0o644)
			t.Log(r.run("packages.sh"))
			if left := read(t, filepath.Join(r.dir, "tests/left")); left != "" {
				t.Errorf("the .deb's removal leaves\n%s", left)
			}
			if text := read(t, filepath.Join(r.dir, "tests/example.out")); !strings.Contains(text,
				"shim on, default hint hot") {
				t.Errorf("the example from the wheel printed %q", text)
			}
		})
	}
}
