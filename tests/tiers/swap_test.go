package tiers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// swapFile turns swap on for the test, unless there is some. It skips the test where that cannot
// be.
func swapFile(t *testing.T) {
	t.Helper()
	swaps, err := os.ReadFile("/proc/swaps")
	if err != nil {
		t.Skip("no swap: ", err)
	}
	if strings.Count(string(swaps), "\n") > 1 {
		return
	}
	if os.Getuid() != 0 {
		t.Skip("there is no swap, and only root can turn it on")
	}
	file := filepath.Join(t.TempDir(), "swap")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20) // a swap file has no holes
	for range 512 {
		if _, err := f.Write(block); err != nil {
			t.Skip("no room for swap: ", err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkswap", file}, {"swapon", file}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("there is no swap, and %s: %v: %s", args[0], err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("swapoff", file).CombinedOutput(); err != nil {
			t.Errorf("swapoff: %v: %s", err, out)
		}
	})
}

// TestSwap: with swap as the slow tier a soft cap binds what is resident, what is in use stays, and
// the contents are right.
func TestSwap(t *testing.T) {
	swapFile(t)
	const limit = 120 << 10 // KiB
	for name, block := range map[string]string{"64 KiB": "64", "1 MiB": "1024", "one block": "0"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report")
			r := preloaded(t, []string{"TA_SLOW_BACKEND=swap", "TA_NORMAL_SOFT=120M",
				"TA_STATS_FILE=" + file}, compile(t, "resident.c", "-O2"), block, "300", "100", "12",
				strconv.Itoa(limit*105/100))
			figures, state, _ := strings.Cut(r.Stdout, "\n")
			if clean(t, r); state != "ok\n" {
				t.Fatalf("contents: %q", state)
			}
			n := numbers(t, figures)
			if n[0] > limit*105/100 || n[1] < n[2]*95/100 {
				t.Errorf("%d KiB resident, of the hot ones %d of %d", n[0], n[1], n[2])
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if f := checked(t, text).Following; f == nil || f.OutCold.Bytes+f.OutUnknown.Bytes == 0 ||
				f.BytesResident == 0 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestSwapUnused: where swap is not used one line says why, and the program is served.
func TestSwapUnused(t *testing.T) {
	for env, why := range map[string]string{
		"TA_NORMAL_HARD=1G":                    "no tier has a soft cap (TA_NORMAL_SOFT)",
		"TA_NORMAL_SOFT=1G TA_ON_SOFTCAP=warn": "it needs TA_ON_SOFTCAP=follow",
	} {
		r := testlib.Run(t, cmd(append(strings.Fields(env), "TA_SLOW_BACKEND=swap",
			"TA_USE_LIBNUMA=0"), "/bin/echo", "served"))
		if want := "tieralloc: TA_SLOW_BACKEND=swap: swap is not used: " + why +
			"\n"; r.Status != 0 || r.Stdout != "served\n" || r.Stderr != want {
			t.Errorf("%s: %+v", env, r)
		}
	}
	swaps, err := os.ReadFile("/proc/swaps")
	if err != nil || strings.Count(string(swaps), "\n") > 1 {
		t.Skip("there is swap")
	}
	r := testlib.Run(t, cmd([]string{"TA_SLOW_BACKEND=swap", "TA_NORMAL_SOFT=1G",
		"TA_USE_LIBNUMA=0"}, "/bin/echo", "served"))
	if want := "tieralloc: TA_SLOW_BACKEND=swap: swap is not used: there is no swap (SwapTotal in " +
		"/proc/meminfo is 0)\n"; r.Status != 0 || r.Stderr != want {
		t.Errorf("%+v", r)
	}
}
