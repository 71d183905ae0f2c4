package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// The whole of --scaling, with programs that are compiled already.
func TestScaling(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "build"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(testlib.Lib(t), filepath.Join(root, "build",
		"libtieralloc.so")); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.compile("scratch"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "") // no compiler
	args := []string{"--quick", "--rounds", "2", "--peers", "none", "--only", "^scratch$", "--root",
		root, "--scaling", "1,3", "--programs"}
	var out strings.Builder
	if err := run(t.Context(), append(args, shared.dir), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{machine(), "2 rounds", "scratch", "\n        1", "\n        3",
		"1.00 (1.00–1.00)", "3 threads: tieralloc takes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if err := run(t.Context(), append(args, t.TempDir()), &out, io.Discard); err == nil {
		t.Error("without programs it went well")
	}
}

// What scales badly shows, and who failed has no figures.
func TestGrid(t *testing.T) {
	g := grid{name: "w", failed: []string{"", "", "x failed"}, times: [][][]float64{
		{{100, 100, 100}, {50, 50, 50}, nil}, {{300, 300, 300}, {55, 50, 60}, nil},
	}}
	var out strings.Builder
	g.print(&out, []contender{{name: "glibc"}, {name: "tieralloc"}, {name: "x"}}, []int{1, 8})
	for _, want := range []string{"3.00 (3.00–3.00)", "1.10 (1.05–1.15)", "–",
		"8 threads: tieralloc takes 0.18 (0.17–0.19) of glibc's time"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "of x's time") {
		t.Errorf("a figure of who failed in\n%s", out.String())
	}
}

func TestScalingChosen(t *testing.T) {
	list, err := options{scaling: []int{1}}.chosen()
	if err != nil || names(list) != "larson, mstress, xmalloc, larson-still, mstress-still, "+
		"xmalloc-still" {
		t.Errorf("%s, %v", names(list), err)
	}
}

// A pattern alone comes to the same sum, without asking for each block.
func TestStill(t *testing.T) {
	for _, w := range stills {
		p := small(100)
		calls := map[string]uint64{}
		sums := map[string]string{}
		for _, name := range []string{w.name, strings.TrimSuffix(w.name, stillSuffix)} {
			j, err := own(name, 0)(p)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "stats.json")
			j.env = append(j.env, "TA_STATS_FILE="+file)
			s, err := p.once(t.Context(), j, tieralloc(t))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var d struct{ Calls map[string]uint64 }
			if err := json.Unmarshal(text, &d); err != nil {
				t.Fatal(err)
			}
			sums[name], calls[name] = s.sum, d.Calls["malloc"]
		}
		whole := strings.TrimSuffix(w.name, stillSuffix)
		if sums[w.name] == "" || sums[w.name] != sums[whole] || calls[w.name]*2 > calls[whole] {
			t.Errorf("%s: sums %v, calls of malloc %v", w.name, sums, calls)
		}
	}
}
