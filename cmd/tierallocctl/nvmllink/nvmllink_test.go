package nvmllink

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// fake is an NVML with a few functions, among them one that calls another by its name.
const fake = `
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 3; return 0; }
int nvmlDeviceGetCount(unsigned *n) { return nvmlDeviceGetCount_v2(n); }
const char *nvmlErrorString(int r) { return r == 3 ? "three" : "other"; }
`

// TestNothingUndefined: this program, which links pkg/nvml, waits for no function of
// NVML, and shows none to the libraries that it opens.
func TestNothingUndefined(t *testing.T) {
	self, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	symbols, err := self.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	if len(symbols) == 0 {
		t.Fatal("no symbols")
	}
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "nvml") {
			t.Errorf("%s, in section %d: is it in functions_amd64.S?", s.Name, s.Section)
		}
	}
}

// TestCalls: before Open, without a library, and with one.
func TestCalls(t *testing.T) {
	if err := Open("/nonexistent/libnvidia-ml.so.1"); err == nil ||
		!strings.Contains(err.Error(), "/nonexistent/") {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "fake.c"), filepath.Join(dir, Library)
	if err := os.WriteFile(source, []byte(fake), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library,
		source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lib := nvml.New(nvml.WithLibraryPath(library))
	if ret := lib.Init(); ret != nvml.ERROR_FUNCTION_NOT_FOUND {
		t.Errorf("before Open: %d", ret)
	}
	if err := Open(library); err != nil {
		t.Fatal(err)
	}
	if ret := lib.Init(); ret != nvml.SUCCESS {
		t.Fatalf("%d", ret)
	}
	if n, ret := lib.DeviceGetCount(); n != 3 || ret != nvml.SUCCESS {
		t.Errorf("%d devices, %d", n, ret)
	}
	if _, ret := lib.SystemGetDriverVersion(); ret != nvml.ERROR_FUNCTION_NOT_FOUND {
		t.Errorf("a function that the library lacks: %d", ret)
	}
	if words := lib.ErrorString(nvml.ERROR_NOT_SUPPORTED); words != "three" {
		t.Errorf("%q", words)
	}
	if ret := lib.Shutdown(); ret != nvml.SUCCESS {
		t.Errorf("shutdown: %d", ret)
	}
}
