package docs

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"tieralloc/internal/testlib"
	"tieralloc/internal/version"
)

// TestVersion: the tool, a report, the header, the Python package and the changelog name one
// version.
func TestVersion(t *testing.T) {
	lib := testlib.Lib(t)
	tool, err := exec.Command(filepath.Join(filepath.Dir(lib), "tierallocctl"), "version").Output()
	if err != nil || string(tool) != "tieralloc "+version.Number+"\n" {
		t.Errorf("tierallocctl version: %q, %v", tool, err)
	}

	file := filepath.Join(t.TempDir(), "report")
	testlib.Run(t, testlib.Cmd{Args: []string{"/bin/true"}, Env: []string{"TA_STATS_FILE=" + file},
		Preload: true})
	var report struct {
		LibraryVersion string `json:"library_version"`
	}
	if err := json.Unmarshal([]byte(read(t, file)), &report); err != nil ||
		report.LibraryVersion != version.Number {
		t.Errorf("report: %q, %v", report.LibraryVersion, err)
	}

	for path, line := range map[string]string{
		"interpose/tieralloc.h": `#define TIERALLOC_VERSION "(.*)"`,
		"python/pyproject.toml": `(?m)^version = "(.*)"`,
		"CHANGELOG.md":          `(?m)^## (\S+)`,
	} {
		m := regexp.MustCompile(line).FindStringSubmatch(read(t,
			filepath.Join(testlib.Root(), path)))
		if m == nil || m[1] != version.Number {
			t.Errorf("%s: %q, not %q", path, m, version.Number)
		}
	}
}
