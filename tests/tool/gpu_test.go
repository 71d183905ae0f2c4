package tool

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// fakeNVML has one device, on which this test's parent is said to run.
const fakeNVML = `
#include <string.h>
#include <unistd.h>
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char name[32]; };
struct memory { unsigned long long total, free, used; };
struct process { unsigned pid; unsigned long long used; unsigned gpu, compute; };
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int r) { return "Driver Not Loaded"; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { static int it; *d = &it; return 0; }
int nvmlDeviceGetName(void *d, char *s, unsigned n) { strncpy(s, "Fake X1", n); return 0; }
int nvmlDeviceGetUUID(void *d, char *s, unsigned n) { strncpy(s, "GPU-0fake", n); return 0; }
int nvmlDeviceGetPciInfo_v3(void *d, struct pci *p)
{ memset(p, 0, sizeof *p); p->bus = 0x2a; return 0; }
int nvmlDeviceGetMemoryInfo(void *d, struct memory *m)
{ m->total = 80ull << 30; m->free = 77ull << 30; m->used = 3ull << 30; return 0; }
int nvmlDeviceGetMemoryAffinity(void *d, unsigned n, unsigned long *set, unsigned scope)
{ set[0] = 5; return scope; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, struct process *p)
{
	if (*n < 1) { *n = 1; return 7; }
	*n = 1; p->pid = getppid(); p->used = 1ull << 30; p->gpu = p->compute = -1;
	return 0;
}
`

// nvml builds the fake, whose nvmlInit returns init, and returns the environment with it.
func nvml(t *testing.T, init string) []string {
	t.Helper()
	testlib.Need(t, "gcc")
	dir := t.TempDir()
	source := filepath.Join(dir, "nvml.c")
	if err := os.WriteFile(source, []byte(fakeNVML), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-w", "-shared", "-fPIC", "-DINIT="+init, "-o",
		filepath.Join(dir, "libnvidia-ml.so.1"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return []string{"LD_LIBRARY_PATH=" + dir}
}

func TestGPU(t *testing.T) {
	for _, bind := range []string{"LD_BIND_NOW=", "LD_BIND_NOW=1"} {
		env := append(nvml(t, "0"), bind)
		r := ctlAlone(t, env, "gpu")
		if r.Status != 0 || r.Stderr != "" {
			t.Fatalf("%s: %+v", bind, r)
		}
		says(t, squeeze(r.Stdout), "0 Fake X1 80 GiB 3.0 GiB 77 GiB 0,2 00000000:2a:00.0 GPU-0fake",
			"on gpu 0:", " - 1.0 GiB - ")
		r = ctlAlone(t, env, "gpu", "--json")
		says(t, squeeze(r.Stdout), `"pci": "00000000:2a:00.0"`, `"bytes_used": 1073741824`,
			`"heap": null`)
	}
}

// TestNoGPU: a machine without NVML, and one without its driver, are told in a line.
func TestNoGPU(t *testing.T) {
	r := ctl(t, nvml(t, "9"), "gpu")
	if r.Status != 69 || r.Stdout != "" ||
		r.Stderr != "tierallocctl: NVML cannot be used: Driver Not Loaded (9)\n" {
		t.Errorf("%+v", r)
	}
	if exec.Command("sh", "-c", "ldconfig -p | grep -q libnvidia-ml.so.1").Run() == nil {
		return // this machine has it
	}
	for _, bind := range []string{"LD_BIND_NOW=", "LD_BIND_NOW=1"} {
		r := ctl(t, []string{bind, "LD_LIBRARY_PATH="}, "gpu")
		if r.Status != 69 || r.Stdout != "" || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("%s: %+v", bind, r)
		}
		says(t, r.Stderr, "NVML is not installed (libnvidia-ml.so.1: ", "driver")
	}
}

// TestBoundAtStart: the other commands work when all symbols are bound at the start.
func TestBoundAtStart(t *testing.T) {
	if r := ctl(t, []string{"LD_BIND_NOW=1"}, "check"); r.Status != 0 || r.Stderr != "" {
		t.Errorf("%+v", r)
	}
	file, err := elf.Open(tool(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "nvml") {
			t.Errorf("%s is undefined in the tool", s.Name)
		}
	}
}
