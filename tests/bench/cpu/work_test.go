package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"tieralloc/internal/testlib"
)

// shared is the one place of all tests: programs are compiled once.
var shared *place

func TestMain(m *testing.M) {
	p, err := newPlace(testlib.Root(), "", 3, 1)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = p
	status := m.Run()
	p.remove()
	os.Exit(status)
}

// small is a place for little work, without a steady figure.
func small(scale int) *place {
	p := *shared
	p.scale, p.rest = scale, 0
	return &p
}

func glibc() contender { return contender{name: "glibc", library: "libc.so.6"} }

func tieralloc(t *testing.T) contender {
	return contender{name: "tieralloc",
		library: testlib.Lib(t)}
}

// kept is this library as the command measures it: where every user may read it.
func kept(t *testing.T, p *place) contender {
	library, err := p.keep(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	return contender{name: "tieralloc", library: library}
}

// optional are the programs that need not be there on a build server either.
var optional = []string{"clang", "clang++", "gawk", "javac", "lua", "nginx", "numpy", "php",
	"php-malloc", "postgres", "redis", "ruby", "torch"}

// prepared is the workload's job; it skips the test where a program lacks.
func prepared(t *testing.T, p *place, w workload) job {
	t.Helper()
	j, err := w.prepare(p)
	var lack lacking
	if errors.As(err, &lack) {
		if slices.Contains(optional, w.name) {
			t.Skip(err)
		}
		testlib.Lacks(t, w.name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Each workload does the same under glibc and this library, and notices nothing wrong.
func TestWorkloads(t *testing.T) {
	for _, w := range slices.Concat(workloads, stills) {
		t.Run(w.name, func(t *testing.T) {
			p := small(4)
			j := prepared(t, p, w)
			row, err := p.turns(t.Context(), w.name, j, []contender{glibc(), kept(t, p)}, 1)
			if err != nil || row.failed[ours] != "" {
				t.Fatalf("glibc: %v, tieralloc: %s", err, row.failed[ours])
			}
			for k, s := range row.samples {
				if s[0].time <= 0 || s[0].cpu < s[0].system || s[0].faults <= 0 ||
					s[0].peak < 500 || s[0].steady != 0 ||
					(s[0].sum == "" && j.once == nil) {
					t.Errorf("contender %d: %+v", k, s[0])
				}
			}
		})
	}
}

// Another amount of work gives another sum: it does depend on what is done.
func TestSumsDepend(t *testing.T) {
	for _, w := range slices.Concat(workloads, stills) {
		sums := map[string]bool{}
		for _, scale := range []int{4, 90} {
			p := small(scale)
			j, err := w.prepare(p)
			if err != nil || !j.own {
				continue
			}
			s, err := p.once(t.Context(), j, glibc())
			if err != nil {
				t.Fatal(err)
			}
			sums[s.sum] = true
		}
		if len(sums) == 1 {
			t.Errorf("%s: one sum for two amounts of work", w.name)
		}
	}
}

// A workload under an allocator that gives memory out twice finds other words than it wrote, has
// another sum in the end, or trips over its own pointers. Where that takes two threads at once, one
// may have ended on a busy machine before the other begins: so there are several tries.
func TestWrongAllocator(t *testing.T) {
	library := filepath.Join(t.TempDir(), "overlap.so")
	if text, err := exec.Command("gcc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", library,
		"testdata/overlap.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	wrong := contender{name: "wrong", library: library}
	p := small(30)
	if _, err := p.once(t.Context(), job{args: []string{"/bin/true"}}, wrong); err != nil {
		t.Fatal("it must be wrong in no other way: ", err)
	}
	for _, w := range slices.Concat(workloads, stills) {
		if j, err := w.prepare(p); err != nil || !j.own {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			for range 20 {
				row, err := p.turns(t.Context(), w.name, prepared(t, p, w),
					[]contender{glibc(), wrong}, 1)
				if err != nil {
					t.Fatal(err)
				}
				if row.failed[1] != "" {
					return
				}
			}
			t.Error("nothing was noticed")
		})
	}
}

// The steady figure is below the peak where all is freed, and the rest is not in the time.
func TestSteady(t *testing.T) {
	p := small(100)
	p.rest = 1500
	for _, w := range slices.Concat(workloads, stills) {
		if w.name != "peak" {
			continue
		}
		s, err := p.once(t.Context(), prepared(t, p, w), tieralloc(t))
		if err != nil {
			t.Fatal(err)
		}
		if s.peak < 40_000 || s.steady <= 0 || s.steady >= s.peak/2 {
			t.Errorf("peak %v KiB, steady %v KiB", s.peak, s.steady)
		}
		if s.time >= s.cpu+1400*1e6 {
			t.Errorf("time %v, processor time %v: the rest is in it", s.time, s.cpu)
		}
	}
}

// A workload refuses arguments that it cannot use.
func TestArguments(t *testing.T) {
	p := small(1)
	program, err := p.compile("simple")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"1", "1"}, {"1", "1", "0", "0"}, {"x", "1", "0"},
		{"1", "", "0"}, {"1", "-1", "0"}, {"1025", "1", "0"}, {"1", "1", "1x"}} {
		r := testlib.Run(t, testlib.Cmd{Args: append([]string{program}, args...)})
		if r.Status != 2 || r.Stdout != "" || r.Stderr == "" {
			t.Errorf("%q: status %d, %q, %q", args, r.Status, r.Stdout, r.Stderr)
		}
	}
}
