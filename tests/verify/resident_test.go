package verify

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestDataResident: a small process has the few memory pages of the library's data resident that
// are written to. The kernel makes 64 KiB resident around what is only read of a file.
func TestDataResident(t *testing.T) {
	lib := testlib.Lib(t)
	cmd := exec.Command("cat")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TA_") // for a setting more pages are written to
	}), "LD_PRELOAD="+lib)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "started")
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	smaps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	name, err := filepath.EvalSymlinks(lib)
	if err != nil {
		t.Fatal(err)
	}
	seen, ours := false, false
	for line := range strings.Lines(string(smaps)) {
		f := strings.Fields(line)
		if strings.Contains(f[0], "-") {
			ours = len(f) > 5 && f[5] == name && f[1] == "rw-p"
		}
		if !ours || f[0] != "Rss:" {
			continue
		}
		seen = true
		var kib int
		if _, err := fmt.Sscan(f[1], &kib); err != nil || kib > 16 {
			t.Errorf("%s KiB of the library's data are resident, %v", f[1], err)
		}
	}
	if !seen {
		t.Error("the library has no data")
	}
}
