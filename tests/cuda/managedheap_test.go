package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

const (
	onDevice = "managed, prefers the device, accessed by 0 -2\n"
	onHost   = "managed, prefers the host, accessed by 0 -2\n"
	plain    = "plain, prefers nothing, accessed by -2 -2\n"
)

// underManaged runs a case of a program with TA_CUDA_MANAGED=1.
func underManaged(t *testing.T, program, name string, env ...string) string {
	t.Helper()
	r := testlib.Run(t, command(true, append([]string{"TA_CUDA_MANAGED=1"}, env...), program, name))
	clean(t, r)
	return r.Stdout
}

// TestManagedHeapHints: memory prefers the device unless it is cold, whichever call it is
// from, whether it is new or reused, and by whatever its hint comes.
func TestManagedHeapHints(t *testing.T) {
	program := cc(t, "managedheap.c")
	want := func(cold string) string {
		var text strings.Builder
		for _, n := range []int{1000, 3 << 20} {
			fmt.Fprintf(&text, "none %d: %s", n, onDevice)
		}
		for range 2 {
			for _, hint := range []string{"hot", "warm", "cold", "pin_fast", "prefer_fast"} {
				for _, n := range []int{1000, 1000, 3 << 20, 3 << 20} {
					where := onDevice
					if hint == cold {
						where = onHost
					}
					fmt.Fprintf(&text, "%s %d: %s", hint, n, where)
				}
			}
		}
		return text.String()
	}
	for _, c := range []struct{ env, want string }{
		{"TA_RULES=", want("cold")},
		{"TA_CUDA_SUBALLOC=all", want("cold")},
		{"TA_CUDA_REUSE=event", want("cold")},
		{"TA_CUDA_ZERO=1", want("cold")},
		{"TA_CUDA_HARD=200M", want("cold")},
		{"TA_RULES=size>=1:hot", want("none of them")},
		{"TA_RULES=size>=1M:cold;size<1M:warm", strings.ReplaceAll(want("none of them"),
			"3145728: "+onDevice, "3145728: "+onHost)},
		{"TA_CUDA_SPILL_HARD=1", want("none of them")}, // the host has no room
	} {
		t.Run(c.env, func(t *testing.T) {
			if got := underManaged(t, program, "hints", c.env); got != c.want {
				t.Error(differences(c.want, got))
			}
		})
	}
	if got := underManaged(t, program, "asked",
		"TA_DEFAULT_HINT=cold"); got != "first 3145728: "+onHost+"second 3145728: "+onHost+
		"2 managed, 0 plain\n" {
		t.Error(got)
	}
}

// TestManagedHeapSwitch: without the setting, or with 0, memory is plain.
func TestManagedHeapSwitch(t *testing.T) {
	program := cc(t, "managedheap.c")
	want := "first 3145728: " + plain + "second 3145728: " + plain + "0 managed, 2 plain\n"
	for _, env := range []string{"TA_RULES=", "TA_CUDA_MANAGED=0", "TA_CUDA=0"} {
		r := testlib.Run(t, command(true, []string{env}, program, "asked"))
		clean(t, r)
		if r.Stdout != want {
			t.Errorf("%s: %s", env, differences(want, r.Stdout))
		}
	}
	r := testlib.Run(t, command(true, []string{"TA_CUDA_MANAGED=yes", "TA_STRICT=0"}, program,
		"asked"))
	if r.Status != 0 || r.Stdout != want ||
		r.Stderr != "tieralloc: TA_CUDA_MANAGED=\"yes\": expected 0 or 1; using 0\n" {
		t.Errorf("status %d, %q, %q", r.Status, r.Stdout, r.Stderr)
	}
}

// TestManagedHeapFallback: a device that has no managed memory has plain memory, and one
// line of the log says so. One that takes no advice has managed memory.
func TestManagedHeapFallback(t *testing.T) {
	program := cc(t, "managedheap.c")
	const line = `"device":0,"error":801,"message":"no managed memory: the device heap has plain ` +
		`memory"`
	for _, c := range []struct{ name, env, program, want, line string }{
		{"no such attribute", "FAKE_MANAGED=0", "asked",
			"first 3145728: " + plain + "second 3145728: " + plain + "0 managed, 2 plain\n", line},
		{"refused", "FAKE_MANAGED=", "refuses",
			"first 3145728: " + plain + "second 3145728: " + plain, line},
		{"cold", "FAKE_MANAGED=0", "asked", "first 3145728: " + plain + "second 3145728: " + plain +
			"0 managed, 2 plain\n",
			line},
		{"no advice", "FAKE_MANAGED=1", "asked",
			strings.ReplaceAll("first 3145728: *second 3145728: *2 managed, 0 plain\n", "*",
				"managed, prefers nothing, accessed by -2 -2\n"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, report := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "stats")
			env := []string{c.env, "TA_LOG=warn", "TA_LOG_FILE=" + log, "TA_STATS_FILE=" + report}
			if c.name == "cold" {
				env = append(env, "TA_DEFAULT_HINT=cold")
			}
			if got := underManaged(t, program, c.program, env...); got != c.want {
				t.Error(differences(c.want, got))
			}
			text, err := os.ReadFile(log)
			lines := strings.Count(string(text), "\n")
			if c.line == "" && lines != 0 || c.line != "" &&
				(lines != 1 || !strings.Contains(string(text), c.line)) {
				t.Errorf("the log: %v %q", err, text)
			}
			if got, err := os.ReadFile(report); err != nil ||
				!strings.Contains(string(got), fmt.Sprintf(`"managed": %v,`, c.line == "")) {
				t.Errorf("the report: %v\n%s", err, got)
			}
		})
	}
}

// TestManagedHeapLimits: the caps are those of plain memory, and the device's size is one.
func TestManagedHeapLimits(t *testing.T) {
	program := cc(t, "managedheap.c")
	blocks := func(device, host int) string {
		return strings.Repeat("block 10485760: "+onDevice, device) +
			strings.Repeat("block 10485760: "+onHost, host)
	}
	for _, c := range []struct {
		name, want string
		env        []string
	}{
		{"hard", blocks(3, 0) + "then 2, 2 of 32 MiB free\n", []string{"TA_CUDA_HARD=32M"}},
		{"spill", blocks(3, 5) + "then 0, 2 of 32 MiB free\n",
			[]string{"TA_CUDA_HARD=32M", "TA_CUDA_ON_HARDCAP=spill"}},
		{"spill cap", blocks(3, 2) + "then 2, 2 of 32 MiB free\n",
			[]string{"TA_CUDA_HARD=32M", "TA_CUDA_ON_HARDCAP=spill", "TA_CUDA_SPILL_HARD=25M"}},
		{"hot", blocks(3, 0) + "then 2, 2 of 32 MiB free\n",
			[]string{"TA_CUDA_HARD=32M", "TA_CUDA_ON_HARDCAP=spill", "TA_DEFAULT_HINT=hot"}},
		{"device", blocks(3, 0) + "then 2, 2 of 32 MiB free\n", []string{"FAKE_MEMORY=33554432"}},
		{"cold", blocks(0, 8) + "then 0, 32 of 32 MiB free\n",
			[]string{"TA_CUDA_HARD=32M", "TA_DEFAULT_HINT=cold"}},
		{"cold, host full", blocks(0, 1) + blocks(3, 0) + "then 2, 2 of 32 MiB free\n",
			[]string{"TA_CUDA_HARD=32M", "TA_DEFAULT_HINT=cold", "TA_CUDA_SPILL_HARD=15M"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := underManaged(t, program, "fill", c.env...); got != c.want {
				t.Error(differences(c.want, got))
			}
		})
	}
}

// TestManagedHeapQuestions: the driver's own word on handles; the rest is the block's.
func TestManagedHeapQuestions(t *testing.T) {
	want := `cu.cuPointerSetAttribute(&on, 6, p[1]) = 0
cu.cuIpcGetMemHandle(&h, p[1]) = 1
cu.cuIpcGetMemHandle(&h, get(3 * MIB)) = 1
cu.cuMemFree_v2(p[1]) = 0
cu.cuMemFree_v2(p[1]) = 1
`
	if got := underManaged(t, cc(t, "managedheap.c"), "questions"); got != want {
		t.Error(differences(want, got))
	}
}

// TestManagedHeapPrograms: programs that know nothing of it behave as with plain memory.
func TestManagedHeapPrograms(t *testing.T) {
	for source, cases := range map[string][]string{
		"hooks.c": {"pointers", "contextless", "uninitialised", "ranges", "info", "foreign",
			"capture", "forked", "errors"},
		"contexts.c": {"contexts", "peers"},
		"ends.c": {"destroys", "releases", "captures", "legacy", "othercontext", "copies", "copied",
			"created", "others", "child", "refusals", "attributes"},
	} {
		program := cc(t, source)
		for _, c := range cases {
			t.Run(source+"/"+c, func(t *testing.T) {
				same(t, []string{"TA_CUDA_MANAGED=1"}, program,
					c)
			})
		}
	}
	for source, cases := range map[string][]string{
		"reuse.c": {"pending", "ordered", "held", "storm", "streams"},
		"api.c":   {"arguments", "guests", "reuse", "batch", "cache", "pools", "storm"},
	} {
		program := cc(t, source)
		for _, c := range cases {
			t.Run(source+"/"+c, func(t *testing.T) { underManaged(t, program, c) })
		}
	}
}
