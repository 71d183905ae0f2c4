package profile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestStorm takes a sample in a kibibyte while signals, exceptions, dlopen, coroutines, threads and
// forks go on. At least 99 of 100 stacks lead to where their thread began.
func TestStorm(t *testing.T) {
	program := testlib.CC(t, "storm.cc", "-O2", "-pthread", "-ldl")
	plugin := testlib.CC(t, "plugin.c", "-O2", "-shared", "-fPIC")
	p, out := run(t, "1K", program, "4", plugin)
	var did [5]int
	if _, err := fmt.Sscan(out, &did[0], &did[1], &did[2], &did[3], &did[4]); err != nil ||
		slices.Min(did[:]) < 10 {
		t.Errorf("it did %q: %v", out, err)
	}
	children, err := filepath.Glob(p.file + ".*")
	if err != nil || len(children) < did[4]*9/10 { // one that was forked within a sample has none
		t.Errorf("%d children wrote a profile: %v", len(children), err)
	}
	samples, broken := p.comment(t, "samples"), p.comment(t, "stacks not unwound to their end")
	t.Logf("%d signals, %d exceptions, %d loads, %d switches, %d forks; %d samples, %d broken, %d "+
		"dropped", did[0], did[1], did[2], did[3], did[4], samples, broken, p.comment(t, "dropped"))
	if samples < 1000 || broken*100 > samples {
		t.Errorf("%d of %d stacks were not unwound to their end", broken, samples)
	}
	ends, odd, all := map[string]int64{}, int64(0), int64(0) // in blocks
	blocks := p.value(t, "alloc_objects")
	for _, s := range p.Sample {
		all += s.Value[blocks]
		names := p.stack(s)
		last := s.Location[len(s.Location)-1]
		if name := names[len(names)-1]; name != "_start" && (last.Mapping == nil ||
			!strings.HasPrefix(filepath.Base(last.Mapping.File), "l")) { // libc or the loader
			ends[name] += s.Value[blocks]
			odd += s.Value[blocks]
		}
		for _, l := range s.Location {
			if l.Mapping != nil && strings.Contains(l.Mapping.File, "libtieralloc") {
				t.Errorf("a frame of the library: %q", names)
			}
		}
	}
	if odd*100 > all {
		t.Errorf("the stacks of %d of %d blocks end in %v", odd, all, ends)
	}
	for _, name := range []string{"thrower", "handler", "plugin_allocate", "coroutine", "churn"} {
		if !p.has(name) {
			t.Errorf("no stack with %s", name)
		}
	}
}

// has reports whether a function whose name contains a text is on a stack.
func (p taken) has(name string) bool {
	for _, l := range p.Location {
		if strings.Contains(p.function(l), name) {
			return true
		}
	}
	return false
}
