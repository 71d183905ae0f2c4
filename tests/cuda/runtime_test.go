package cuda

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// object compiles a shared object into a folder.
func object(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	args = append([]string{"-shared", "-fPIC", "-O2", "-Wall", "-fno-builtin", "-o", path}, args...)
	if msg, err := exec.Command("gcc", append(args, "-I", "fake", "-I",
		filepath.Join("..", "..", "interpose"))...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %v: %v\n%s", args, err, msg)
	}
	return path
}

const plug, cudart = "testdata/plug.c", "fake/runtime/cudart.c"

// plugs are plug-ins by how they come by a runtime.
func plugs(t *testing.T) map[string]string {
	dir := t.TempDir()
	const renamed = "libcudart-d0da41ae.so.11.0"
	runtime := object(t, dir, renamed, cudart, "-Wl,-soname,"+renamed, "-Wl,-Bsymbolic")
	other := object(t, dir, "libcompute.so", cudart, "-Wl,-soname,libcompute.so", "-Wl,-Bsymbolic",
		"-Wl,--hash-style=sysv")
	here := "-Wl,-rpath," + dir
	return map[string]string{
		"shared":   object(t, dir, "shared.so", plug, filepath.Join(drivers, "libcudart.so.13")),
		"renamed":  object(t, dir, "renamed.so", plug, runtime, here),
		"other":    object(t, dir, "other.so", plug, other, here),
		"static":   object(t, dir, "static.so", plug, cudart),
		"static 2": object(t, dir, "static2.so", plug, cudart),
		"old":      object(t, dir, "old.so", plug, cudart, "-DCUDART=11080"),
	}
}

// TestRuntimeElsewhere: calls find their runtime although the object that they come from
// has none, and no search of all that is loaded finds it.
func TestRuntimeElsewhere(t *testing.T) {
	host := cc(t, "host.c")
	for name, path := range plugs(t) {
		t.Run(name, func(t *testing.T) {
			plain, _ := same(t, nil, host, "calls", path)
			if !strings.Contains(plain, "alloc(&p, 1000) = 0") {
				t.Errorf("nothing is allocated:\n%s", plain)
			}
		})
	}
}

// TestUnload: a plug-in that has called the runtime goes when it is closed, and what was
// known of it goes too, though the next one may be where it was. Its last free is then.
func TestUnload(t *testing.T) {
	host, p := cc(t, "host.c"), plugs(t)
	for name, set := range map[string][]string{
		"shared":  {p["shared"]},
		"renamed": {p["renamed"]},
		"static":  {p["static"], p["old"], p["static 2"]},
		"mixed":   {p["old"], p["shared"], p["other"], p["static"]},
	} {
		t.Run(name, func(t *testing.T) {
			plain, _ := same(t, nil, append([]string{host, "unload"}, set...)...)
			if !strings.Contains(plain, "at the end 0") ||
				strings.Contains(plain, "still loaded: 1") {
				t.Errorf("not a test of plug-ins that go:\n%s", plain)
			}
		})
	}
}

// TestRuntimeStorm: runtimes are searched for while others come and go.
func TestRuntimeStorm(t *testing.T) {
	host, p := cc(t, "host.c"), plugs(t)
	for _, first := range []string{"static", "renamed"} {
		t.Run(first, func(t *testing.T) {
			same(t, nil, host, "storm", p[first], p["static 2"],
				p["old"])
		})
	}
}

// TestSharedRuntime: the errors of a shared runtime's calls are the driver's and stay
// for cudaGetLastError; its calls are served wherever they come from, whatever went
// wrong at first.
func TestSharedRuntime(t *testing.T) {
	program := cc(t, "shared.c", linkedWith()...)
	for mode, env := range modes {
		for _, c := range []string{"errors", "first", "sites"} {
			if c == "errors" && (mode == "event" || mode == "both") {
				continue // a free that does not wait meets no error
			}
			t.Run(mode+"/"+c, func(t *testing.T) { same(t, env, program, c) })
		}
	}
	t.Run("figures", func(t *testing.T) {
		r := testlib.Run(t, command(true, nil, program, "figures"))
		clean(t, r)
		const want = "alloc_calls 3 refused 1 free_calls 2 frees_invalid 1\n"
		if !strings.HasSuffix(r.Stdout, want) {
			t.Errorf("%s, want %s", r.Stdout, want)
		}
	})
}

// TestRuntimeInterposer: another library that stands before or after ours, and passes
// the runtime's calls on to what comes next.
func TestRuntimeInterposer(t *testing.T) {
	// Its calls are to have its own return address.
	before := object(t, t.TempDir(), "before.so", "testdata/before.c",
		"-fno-optimize-sibling-calls")
	linked := cc(t, "ways.c", linkedWith()...)
	for _, preload := range []string{before + " " + testlib.Lib(t), testlib.Lib(t) + " " + before} {
		for _, c := range []string{"runtime", "entry", "devices"} {
			plain := testlib.Run(t, command(false, nil, linked, c))
			clean(t, plain)
			r := testlib.Run(t, command(false, []string{"LD_PRELOAD=" + preload}, linked, c))
			clean(t, r)
			if got := results(r.Stdout); got != results(plain.Stdout) {
				t.Errorf("LD_PRELOAD=%s %s:\n%s", preload, c,
					differences(results(plain.Stdout), got))
			}
		}
	}
}

// TestHandles: shared memory is closed as often as it was opened, and by the addresses
// that it was opened at.
func TestHandles(t *testing.T) {
	program := cc(t, "ipc.c")
	for mode, env := range modes {
		for _, c := range []string{"interior", "twice", "refused", "many"} {
			t.Run(mode+"/"+c, func(t *testing.T) { same(t, env, program, c) })
		}
	}
}
