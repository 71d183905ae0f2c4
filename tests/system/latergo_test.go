package system

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// laterGo is a Go of the release after the pinned one. A system that has it builds with it, though
// the edits of the library (internal/postlink) and its layout rest on what Go's linker writes.
const laterGo = "golang.org/toolchain@v0.0.1-go1.27.4.linux-amd64"

// TestLaterGo: what a later Go builds is as small as the library is to be, is edited in the same
// way, and keeps the rules for code without a runtime.
func TestLaterGo(t *testing.T) {
	if os.Getenv("TA_TEST_SYSTEM") == "" {
		t.Skip("it downloads another Go: TA_TEST_SYSTEM=1 asks for it")
	}
	dir := fetchGo(t, laterGo)
	tree := filepath.Join(t.TempDir(), "tree")
	clone := exec.Command("git", "clone", "-q", testlib.Root(), tree)
	if text, err := clone.CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, text)
	}
	res := testlib.Run(t, testlib.Cmd{
		Args: []string{filepath.Join(tree, "build.sh"), "test", "./internal/postlink",
			"./tests/verify", "./tests/faults"},
		Env:     []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")},
		Timeout: 10 * time.Minute,
	})
	if res.Status != 0 {
		t.Errorf("with %s, ./build.sh test ended with %d\n%s", laterGo, res.Status,
			last(res.Stdout+res.Stderr))
	}
	t.Log(last(res.Stdout))
}

// fetchGo downloads a Go into the module cache, as build.sh does, and returns its folder.
func fetchGo(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "GO111MODULE=on", "GOFLAGS=", "GOWORK=off")
	text, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if json.Unmarshal(text, &answer) != nil || err != nil {
		t.Skipf("%s cannot be downloaded: %v %s", module, err, answer.Error)
	}
	// Modules are unpacked without the permission to run what is in them.
	for _, name := range []string{"bin", "pkg/tool"} {
		chmod := exec.Command("chmod", "-R", "a+x", filepath.Join(answer.Dir, name))
		if text, err := chmod.CombinedOutput(); err != nil {
			t.Fatalf("chmod: %v\n%s", err, text)
		}
	}
	return answer.Dir
}
