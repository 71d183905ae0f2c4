package profile

import (
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/jsonschema"
	"tieralloc/internal/testlib"
)

// site is an entry of a report's "sites".
type site struct {
	Allocated uint64   `json:"bytes_total_alloc"`
	Blocks    uint64   `json:"blocks_total_alloc"`
	Freed     uint64   `json:"blocks_total_freed"`
	Live      uint64   `json:"bytes_live"`
	Peak      uint64   `json:"bytes_peak"`
	Size      uint64   `json:"size_median"`
	Lifetime  *uint64  `json:"lifetime_median_ns"`
	Tier      string   `json:"tier"`
	Stack     []string `json:"stack"`
}

// runWithReport runs a program with a report and returns the text of all reports that it leaves,
// its own first, and the file of its profile.
func runWithReport(t *testing.T, rate string, args ...string) (reports [][]byte, heap string) {
	t.Helper()
	dir := t.TempDir()
	heap = filepath.Join(t.TempDir(), "heap.pb")
	res := testlib.Run(t, testlib.Cmd{Args: args, Preload: true, Env: []string{"TA_PROFILE=" + heap,
		"TA_PROFILE_RATE=" + rate, "TA_STATS_FILE=" + filepath.Join(dir, "stats.json")}})
	if res.Status != 0 || res.Stderr != "" {
		t.Fatalf("%q ended with %d, standard error %q", args, res.Status, res.Stderr)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, text)
	}
	return reports, heap
}

// sitesOf checks a report against the schema and returns its sites.
func sitesOf(t *testing.T, text []byte) []site {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join(testlib.Root(), "docs/stats.schema.json"))
	if err == nil {
		err = jsonschema.Validate(schema, text)
	}
	var r struct{ Sites *[]site }
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if r.Sites == nil {
		t.Fatal("the report has no sites")
	}
	list := *r.Sites
	for i := range list {
		if i > 0 && list[i].Allocated > list[i-1].Allocated {
			t.Errorf("site %d has more bytes than that before it", i)
		}
		if len(list[i].Stack) > 16 {
			t.Errorf("site %d has %d frames", i, len(list[i].Stack))
		}
	}
	if len(list) > 50 {
		t.Errorf("%d sites", len(list))
	}
	return list
}

// functionAt names the function of a program that a frame is in, as addr2line would find it.
func functionAt(t *testing.T, program, frame string) string {
	t.Helper()
	at, found := strings.CutPrefix(frame, filepath.Base(program)+"+0x")
	if !found {
		return ""
	}
	address, err := strconv.ParseUint(at, 16, 64)
	if err != nil {
		t.Fatalf("%s: %v", frame, err)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && address >= s.Value && address < s.Value+s.Size {
			return s.Name
		}
	}
	return ""
}

// TestMedians holds the medians to what the program did. A lifetime is never shorter than the
// program held the block, and the estimate at most a fifth too short; it may be much longer on a
// machine that is busy.
func TestMedians(t *testing.T) {
	for _, kind := range []string{"-pie", "-no-pie"} {
		program := testlib.CC(t, "medians.c", "-O1", "-lm", "-fPIE", kind)
		reports, heap := runWithReport(t, "4K", program)
		if len(reports) != 1 {
			t.Fatalf("%d reports", len(reports))
		}
		list := sitesOf(t, reports[0])
		if len(list) != 50 {
			t.Errorf("%d sites", len(list))
		}
		byName, deep := map[string]site{}, 0
		for _, s := range list {
			name := functionAt(t, program, s.Stack[0])
			if byName[name] = s; name == "deep" {
				deep++
			}
		}
		if deep < 40 {
			t.Errorf("%d sites in a recursion", deep)
		}
		p := read(t, heap)
		const ms = 1e6
		checkMedians(t, p, byName, "held10", 10*ms, 40000, 40000)
		checkMedians(t, p, byName, "held100", 100*ms, 3<<20, 3<<20)
		checkMedians(t, p, byName, "held1000", 1000*ms, 3<<20, 3<<20)
		checkMedians(t, p, byName, "kept", 0, 40000, 40000)
		// The median of log-uniform sizes is the geometric mean of their bounds, 32 KiB. Of 4,000
		// samples it is known to a twentieth.
		checkMedians(t, p, byName, "sized", 0, 32768/1.2, 32768*1.2)
		if s := byName["kept"]; s.Freed != 0 || s.Live == 0 || s.Peak == 0 || s.Tier != "normal" {
			t.Errorf("kept: %+v", s)
		}
		if s := byName["sized"]; s.Freed < 4000 || s.Freed > 6000 || s.Live != 0 {
			t.Errorf("sized: %+v", s)
		}
	}
}

// checkMedians compares the medians of a site with the time that its blocks were held, 0 for none,
// and the bounds of their size, in the report and in the profile.
func checkMedians(t *testing.T, p taken, sites map[string]site, name string, held, low, high float64) {
	t.Helper()
	s, there := sites[name]
	if !there {
		t.Errorf("no site %s", name)
		return
	}
	if size := float64(s.Size); size < low || size > high {
		t.Errorf("%s: the median size is %.0f, not from %.0f to %.0f", name, size, low, high)
	}
	switch {
	case held == 0 && s.Freed == 0:
		if s.Lifetime != nil {
			t.Errorf("%s: the median lifetime is %d", name, *s.Lifetime)
		}
	case s.Lifetime == nil:
		t.Errorf("%s: no median lifetime", name)
	case held > 0 && (float64(*s.Lifetime) < held*0.8 || float64(*s.Lifetime) > held*10):
		t.Errorf("%s: the median lifetime is %d ns, not %.0f", name, *s.Lifetime, held)
	}
	for _, sample := range p.Sample {
		if p.function(sample.Location[0]) != name {
			continue
		}
		if got := sample.NumLabel["size_median"]; len(got) != 1 || uint64(got[0]) != s.Size ||
			sample.NumUnit["size_median"][0] != "bytes" {
			t.Errorf("%s: the profile's median size is %v, the report's %d", name, got, s.Size)
		}
		got := sample.NumLabel["lifetime_median"]
		if s.Lifetime == nil && got == nil {
			continue
		}
		if s.Lifetime == nil || len(got) != 1 || uint64(got[0]) != *s.Lifetime ||
			sample.NumUnit["lifetime_median"][0] != "nanoseconds" {
			t.Errorf("%s: the profile's median lifetime is %v, the report's %v", name, got,
				s.Lifetime)
		}
	}
}

// TestNoSites: a profile without samples gives an empty list, and without a profile there is none.
func TestNoSites(t *testing.T) {
	reports, _ := runWithReport(t, "1G", "/bin/echo")
	if list := sitesOf(t, reports[0]); len(list) != 0 {
		t.Errorf("%d sites: %+v", len(list), list)
	}
	file := filepath.Join(t.TempDir(), "stats.json")
	testlib.Run(t, testlib.Cmd{Args: []string{"/bin/echo"}, Preload: true,
		Env: []string{"TA_STATS_FILE=" + file}})
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), `"sites"`) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestSitesOfChildren: the report of a forked child has sites, those of its parent included.
func TestSitesOfChildren(t *testing.T) {
	testlib.Need(t, "bash")
	reports, _ := runWithReport(t, "1K", "bash", "-c",
		`x=$(printf %100000s y); (y=$x$x; exit 3); exit 0`)
	if len(reports) < 2 {
		t.Fatalf("%d reports", len(reports))
	}
	for _, text := range reports {
		if len(sitesOf(t, text)) == 0 {
			t.Error("no sites")
		}
	}
}

// TestSitesOfThreads: a stack that two threads have is one site of the report, and two of the
// profile.
func TestSitesOfThreads(t *testing.T) {
	program := testlib.CC(t, "threads.c", "-O1", "-D_GNU_SOURCE", "-pthread")
	reports, heap := runWithReport(t, "1K", program)
	found := 0
	for _, s := range sitesOf(t, reports[0]) {
		if functionAt(t, program, s.Stack[0]) != "shared" {
			continue
		}
		found++ // each block is sampled
		if s.Allocated != 200*100000 || s.Blocks != 200 || s.Freed != 100 ||
			s.Live != 100*100000 || s.Size != 100000 || s.Lifetime == nil {
			t.Errorf("%+v", s)
		}
	}
	threads := map[string]bool{}
	p := read(t, heap)
	for _, s := range p.Sample {
		if p.function(s.Location[0]) == "shared" {
			threads[s.Label["thread"][0]] = true
		}
	}
	if found != 1 || len(threads) != 2 {
		t.Errorf("%d sites of threads %v", found, threads)
	}
}
