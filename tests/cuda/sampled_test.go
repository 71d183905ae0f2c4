package cuda

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"tieralloc/internal/testlib"
)

// A held is what the blocks of a call site are: by memory, "host" or a kind and a device's number.
type held struct{ allocs, bytes, live, liveBytes, peak int64 }

// sampledRun runs a case of sampled.c with a profile, and returns the profile's file and the
// program's output. Of the host every block of a mebibyte is sampled, too.
func sampledRun(t *testing.T, name string, env ...string) (file, out string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "heap.pb")
	r := testlib.Run(t, command(true, append([]string{"TA_PROFILE=" + file, "TA_PROFILE_RATE=1K"},
		env...), cc(t, "sampled.c"), name))
	clean(t, r)
	return file, strings.TrimSpace(r.Stdout)
}

// named gives a profile the names of functions, and returns its new file.
func named(t *testing.T, file string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "named.pb")
	r := testlib.Run(t, testlib.Cmd{Args: []string{testlib.Tool(t), "profile", "-o", path, file}})
	if r.Status != 0 {
		t.Fatal(r.Stderr)
	}
	return path
}

// sampledSites reads a profile from which no sample was dropped.
func sampledSites(t *testing.T, file string) map[string]held {
	t.Helper()
	sites, dropped := sitesOf(t, file)
	if dropped != "dropped 0" {
		t.Error(dropped)
	}
	return sites
}

// sitesOf reads a profile with names: the figures of each site and memory, and the comment on
// dropped samples. A sample has values of the host or of a device only.
func sitesOf(t *testing.T, file string) (sites map[string]held, dropped string) {
	t.Helper()
	data, err := os.ReadFile(named(t, file))
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, s := range p.SampleType {
		at[s.Type] = i
	}
	sites = map[string]held{}
	for _, s := range p.Sample {
		memory, prefix, other := "host", "", "device_"
		if d := s.Label["device"]; len(d) == 1 {
			memory, prefix, other = s.Label["kind"][0]+" "+d[0], "device_", ""
		}
		name, functions := "", ""
		for _, l := range s.Location {
			if l.Mapping != nil && strings.Contains(l.Mapping.File, "libtieralloc") {
				t.Errorf("a frame of the library itself: %v", l)
			}
			for _, line := range l.Line {
				functions += " " + line.Function.Name
				if site, ok := strings.CutSuffix(line.Function.Name, "_site"); ok && name == "" {
					name = site
				}
			}
		}
		get := func(kind string) int64 {
			if i, ok := at[other+kind]; ok && s.Value[i] != 0 {
				t.Errorf("%s%s of %s is %d", other, kind, memory, s.Value[i])
			}
			return s.Value[at[prefix+kind]]
		}
		if name == "" && memory != "host" {
			t.Errorf("device memory of no site:%s", functions)
		}
		if name == "" || memory == "host" && name != "host" {
			continue // the driver's
		}
		h := sites[name+" "+memory]
		h.allocs += get("alloc_objects")
		h.bytes += get("alloc_space")
		h.live += get("inuse_objects")
		h.liveBytes += get("inuse_space")
		h.peak += get("peak_space")
		sites[name+" "+memory] = h
	}
	for _, c := range p.Comments {
		if strings.HasPrefix(c, "dropped ") {
			dropped = c
		}
	}
	return sites, dropped
}

func sitesAre(t *testing.T, got, want map[string]held) {
	t.Helper()
	if !maps.Equal(got, want) {
		for k := range want {
			if got[k] != want[k] {
				t.Errorf("%s: %v, want %v", k, got[k], want[k])
			}
		}
		for k := range got {
			if _, ok := want[k]; !ok {
				t.Errorf("%s: %v is not expected", k, got[k])
			}
		}
	}
}

const mib = 1 << 20

// TestSampledSites: every block is in the profile, at its call site, until it is free. At
// the peak of the device only the first site had blocks, and at that of managed memory one site.
func TestSampledSites(t *testing.T) {
	for _, async := range []string{"driver", "heap"} {
		for _, reuse := range []string{"sync", "event"} {
			file, _ := sampledRun(t, "sites", "TA_CUDA_ASYNC="+async, "TA_CUDA_REUSE="+reuse)
			got := sampledSites(t, file)
			sitesAre(t, got, map[string]held{
				"plain device 0":    {3, 12 * mib, 2, 8 * mib, 12 * mib},
				"small device 0":    {5, 5000, 0, 0, 0},
				"async device 0":    {4, 4 * 65536, 2, 2 * 65536, 0},
				"managed managed 0": {2, 2 * mib, 1, mib, 2 * mib},
				"refused managed 0": {1, mib, 1, mib, 0},
				"own device 0":      {7, 14000, 4, 8000, 0},
				"again device 0":    {101, 303 * mib, 1, 3 * mib, 0},
				"second device 1":   {2, 16 * mib, 2, 16 * mib, 16 * mib},
				"host host":         {1, mib, 1, mib, mib},
			})
		}
	}
}

// TestSampledTool: the host and each kind of a device's memory have totals of their own.
func TestSampledTool(t *testing.T) {
	file, _ := sampledRun(t, "sites")
	r := testlib.Run(t, testlib.Cmd{Args: []string{testlib.Tool(t), "profile", file}})
	for _, want := range []string{"\ndevice 0: device_inuse_space 11 MiB\n",
		"\ndevice 0 (managed): device_inuse_space 2.0 MiB\n",
		"\ndevice 1: device_inuse_space 16 MiB\n"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in\n%s%s", want, r.Stdout, r.Stderr)
		}
	}
	host, _, _ := strings.Cut(r.Stdout, "\ndevice 0")
	if strings.Contains(host, "plain_site") || !strings.Contains(host, "host_site") {
		t.Errorf("of the host:\n%s", host)
	}
}

// TestSampledPprof: pprof shows the memory of one device, and divides devices and kinds.
func TestSampledPprof(t *testing.T) {
	file, _ := sampledRun(t, "sites")
	path := named(t, file)
	pprof := func(args ...string) string {
		out, err := exec.Command("go", append(append([]string{"tool", "pprof", "-top",
			"-sample_index=device_peak_space"}, args...), path)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	one := pprof("-tagfocus=device=^0$")
	if !strings.Contains(one, " plain_site\n") || strings.Contains(one, " second_site\n") {
		t.Errorf("of device 0:\n%s", one)
	}
	all := pprof("-tagroot=device,kind", "-cum")
	for _, want := range []string{`28MB +[0-9.]+% +device\n`, `16MB +[0-9.]+% +1\n`,
		`14MB +[0-9.]+% +0\n`} {
		if !regexp.MustCompile(want).MatchString(all) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

// TestSampledThreads: threads free each other's blocks.
func TestSampledThreads(t *testing.T) {
	for _, reuse := range []string{"sync", "event"} {
		file, out := sampledRun(t, "threads", "TA_CUDA_REUSE="+reuse)
		var kept, all int64
		if _, err := fmt.Sscanf(out, "%d of %d", &kept, &all); err != nil {
			t.Fatal(out)
		}
		got := sampledSites(t, file)["shared device 0"]
		if want := (held{all, all * 4096, kept, kept * 4096, got.peak}); got != want ||
			got.peak < got.liveBytes || got.peak > (32+4)*4096 {
			t.Errorf("%s: %v, want %v", reuse, got, want)
		}
	}
}

// TestSampledEnds: blocks end with their context, or with the reset of their device, and a context
// in its place has its own.
func TestSampledEnds(t *testing.T) {
	file, _ := sampledRun(t, "ends")
	got := sampledSites(t, file)
	sitesAre(t, got, map[string]held{
		"plain device 0": {1, 2 * mib, 1, 2 * mib, 2 * mib},
		"ended device 0": {2, 4*mib + 1000, 0, 0, got["ended device 0"].peak},
		"ended device 1": {1, 6 * mib, 0, 0, 6 * mib},
		"again device 0": {1, 4 * mib, 1, 4 * mib, got["again device 0"].peak},
	})
	file, _ = sampledRun(t, "late")
	sitesAre(t, sampledSites(t, file), map[string]held{
		"ended device 0": {1800, 1800 * 4096, 0, 0, sampledSites(t, file)["ended device 0"].peak}})
}

// TestSampledKinds: memory that the driver allocates is in the profile, as what it is.
func TestSampledKinds(t *testing.T) {
	file, _ := sampledRun(t, "kinds")
	want := map[string]held{}
	for site, n := range map[string]int64{"lent managed 0": 3000, "pitched device 0": 10240,
		"array device 0": 256 * 16 * 4, "levels device 0": (64*64 + 32*32) * 4,
		"created device 0": 2 * mib, "pooled device 0": 70000} {
		want[site] = held{2, 2 * n, 1, n, 0}
	}
	got := sampledSites(t, file)
	for site, h := range got {
		h.peak = 0
		got[site] = h
	}
	sitesAre(t, got, want)
}

// TestSampledCapture: a block is free with the program's call, although the heap keeps it until the
// capture of a graph ends. The graph's own memory is in no profile.
func TestSampledCapture(t *testing.T) {
	for _, async := range []string{"driver", "heap"} {
		file, _ := sampledRun(t, "captured", "TA_CUDA_ASYNC="+async)
		sitesAre(t, sampledSites(t, file), map[string]held{
			"plain device 0": {1, mib, 0, 0, 0},
			"again device 0": {2, 2 * mib, 2, 2 * mib, 2 * mib},
		})
	}
}

// TestSampledElsewhere: blocks that are freed outside their context are free.
func TestSampledElsewhere(t *testing.T) {
	for _, async := range []string{"driver", "heap"} {
		file, _ := sampledRun(t, "elsewhere", "TA_CUDA_ASYNC="+async)
		sitesAre(t, sampledSites(t, file), map[string]held{
			"plain device 0":  {4, 4 * mib, 1, mib, 4 * mib},
			"second device 1": {1, mib, 1, mib, mib},
		})
	}
}

// TestSampledHandlers: a signal handler allocates device memory while its thread is in the heap, or
// in the profile. Samples of the handler may be dropped; those of the thread are not.
func TestSampledHandlers(t *testing.T) {
	file, out := sampledRun(t, "handlers")
	var n int64
	if _, err := fmt.Sscan(out, &n); err != nil {
		t.Fatal(out)
	}
	sites, _ := sitesOf(t, file)
	got := sites["own device 0"]
	if want := (held{n, n * 2 * mib, 0, 0, got.peak}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSampledClone: a child works, however it came about while another thread was in the profile.
func TestSampledClone(t *testing.T) {
	sampledRun(t, "clones")
}

// TestSampledFork: a forked child has none of its parent's device memory.
func TestSampledFork(t *testing.T) {
	file, child := sampledRun(t, "forks")
	plain := held{1, 2 * mib, 1, 2 * mib, 2 * mib}
	host := held{1, mib, 1, mib, mib}
	sitesAre(t, sampledSites(t, file), map[string]held{"plain device 0": plain, "host host": host})
	plain.live, plain.liveBytes = 0, 0
	sitesAre(t, sampledSites(t, file+"."+child), map[string]held{"plain device 0": plain,
		"host host": host})
}

// TestSampledSpill: memory that is on the host for want of room is not the device's.
func TestSampledSpill(t *testing.T) {
	file, _ := sampledRun(t, "spills", "TA_CUDA_HARD=10M", "TA_CUDA_ON_HARDCAP=spill")
	sitesAre(t, sampledSites(t, file), map[string]held{
		"plain device 0":   {1, 8 * mib, 1, 8 * mib, 8 * mib},
		"second spilled 0": {1, 8 * mib, 1, 8 * mib, 8 * mib},
	})
}

// TestNothingSampled: a profile without device memory has no type for it.
func TestNothingSampled(t *testing.T) {
	file, _ := sampledRun(t, "spills", "TA_CUDA=0")
	data, err := os.ReadFile(file)
	if err != nil || bytes.Contains(data, []byte("device_")) {
		t.Error("types of device memory", err)
	}
}
