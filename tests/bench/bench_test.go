package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// small are programs that end at once.
var small = []string{"/bin/true", "ls /", "sed p /dev/null", "git --version", "gcc --version",
	"perl -e 1", "bash -c :"}

// BenchmarkStartup is the time of small programs from start to end.
func BenchmarkStartup(b *testing.B) { startup(b, allocators(b)) }

// BenchmarkStartupParts tells what the library's share of it is made of: loading any
// shared library at all, loading this one (disabled), its boot, and what it would
// cost as the Go tool alone leaves it.
func BenchmarkStartupParts(b *testing.B) {
	dir := b.TempDir()
	empty, unedited := filepath.Join(dir, "empty.so"), filepath.Join(dir, "unedited.so")
	command(b, "gcc", "-shared", "-fPIC", "-o", empty, filepath.Join("testdata", "empty.c"))
	versions := "-Wl,--version-script=" + filepath.Join(testlib.Root(), "interpose", "exports.map")
	command(b, "go", "build", "-buildmode=c-shared", "-ldflags", "-extldflags '"+versions+"'", "-o",
		unedited, testlib.Root())
	startup(b, []allocator{{name: "glibc"}, {name: "empty library", library: empty},
		with(b, "disabled", "TA_DISABLE=1"),
		with(b, "tieralloc"), {name: "unedited", library: unedited}})
}

func command(b *testing.B, name string, args ...string) {
	b.Helper()
	cmd := exec.Command(name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// startup measures small programs under each contender.
func startup(b *testing.B, all []allocator) {
	const rounds = 400
	c := contest{all, "us", rounds, 2}
	spawn := testlib.CC(b, "spawn.c", "-O2")
	var rows []row
	for _, name := range small {
		if _, err := exec.LookPath(strings.Fields(name)[0]); err != nil {
			b.Logf("not run: %v", err)
			continue
		}
		r := row{name, c.spawned(b, spawn, name)}
		c.report(b, r)
		rows = append(rows, r)
	}
	c.table(b, rows)
}

// spawned are the times of a program, in microseconds, by contender and round.
func (c contest) spawned(b *testing.B, spawn, program string) (samples [][]float64) {
	args := []string{spawn, strconv.Itoa(c.rounds), program}
	for _, a := range c.all {
		if a.library == "" {
			a.library = "-"
		}
		args = append(args, a.library+","+strings.Join(a.env, " "))
	}
	lines := strings.Split(strings.TrimSpace(c.all[0].run(b, args...)), "\n")
	if len(lines) != len(c.all) {
		b.Fatalf("%d lines for %d contenders", len(lines), len(c.all))
	}
	for _, line := range lines {
		var times []float64
		for _, field := range strings.Fields(line) {
			ns, err := strconv.ParseFloat(field, 64)
			if err != nil {
				b.Fatal(err)
			}
			times = append(times, ns/1e3)
		}
		samples = append(samples, times)
	}
	return samples
}

var sizes = []string{"16", "64", "256", "1024", "4096", "16384", "65536", "262144", "1048576"}

// pairs runs testdata/pairs.c for each case, which is "mode/size".
func (c contest) pairs(b *testing.B, cases []string) {
	program := testlib.CC(b, "pairs.c", "-O2")
	c.run(b, cases, func(b *testing.B, a allocator, name string) float64 {
		mode, size, _ := strings.Cut(name, "/")
		return a.number(b, program, mode, size)
	})
}

// BenchmarkPairs is one thread that allocates and frees blocks of one size.
func BenchmarkPairs(b *testing.B) {
	var cases []string
	for _, mode := range []string{"lifo", "random", "fifo", "reverse"} {
		for _, size := range sizes {
			cases = append(cases, mode+"/"+size)
		}
	}
	contest{allocators(b), "ns", 5, 2}.pairs(b, cases)
}

// BenchmarkOthers is the other functions of malloc's family.
func BenchmarkOthers(b *testing.B) {
	contest{allocators(b), "ns", 5, 2}.pairs(b,
		[]string{"calloc/100", "calloc/2000", "aligned/100", "aligned/1024", "aligned/16384",
			"stays/100", "stays/10000", "usable/100"})
}

// BenchmarkCross is one thread that allocates what another frees.
func BenchmarkCross(b *testing.B) {
	contest{allocators(b), "ns", 5, 2}.pairs(b, []string{"cross/64", "cross/1024", "cross/65536"})
}

// BenchmarkRealloc is a buffer that grows.
func BenchmarkRealloc(b *testing.B) {
	program := testlib.CC(b, "grow.c", "-O2")
	compare(b, "us", 5, []string{"double", "touched", "step"},
		func(b *testing.B, a allocator, name string) float64 {
			return a.number(b, program, name)
		})
}

var totals = regexp.MustCompile(`(?m)^(?:totals|summary): (\d+)`)

// instructions is how many the program executes, by valgrind's count.
func instructions(b *testing.B, a allocator, args ...string) float64 {
	out := filepath.Join(b.TempDir(), "callgrind.out")
	cmd := append([]string{"valgrind", "--tool=callgrind", "--callgrind-out-file=" + out}, args...)
	a.run(b, cmd...)
	text, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	m := totals.FindSubmatch(text)
	if m == nil {
		b.Fatalf("%s: no totals in callgrind's output", a.name)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkInstructions counts the instructions of a pair, free of noise. Not every library that
// may be named runs under valgrind: snmalloc does not.
func BenchmarkInstructions(b *testing.B) {
	contest{installed(b), "instructions", 1, 2}.instructions(b,
		[]string{"lifo/16", "lifo/1024", "lifo/4096", "random/64", "fifo/64"})
}

// instructions is pairs by valgrind's count: the difference between runs of n and 2n
// pairs.
func (c contest) instructions(b *testing.B, cases []string) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		b.Skip("valgrind is not installed")
	}
	const n = 100_000
	program := testlib.CC(b, "pairs.c", "-O2")
	c.run(b, cases, func(b *testing.B, a allocator, name string) float64 {
		mode, size, _ := strings.Cut(name, "/")
		once := instructions(b, a, program, mode, size, strconv.Itoa(n))
		twice := instructions(b, a, program, mode, size, strconv.Itoa(2*n))
		return (twice - once) / n
	})
}
