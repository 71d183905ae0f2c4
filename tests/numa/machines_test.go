package numa

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// The two machines of these tests.

// TestThreeNodes: a fast node with the processors, an ordinary and a slow one; the
// firmware tells them apart.
func TestThreeNodes(t *testing.T) {
	t.Parallel()
	g := guest{nodes: "256/2/100/50000 384/0/200/25000 384/0/400/6000", words: "hugepages=24",
		files: append(guestFiles(t), program(t, "refuse"), program(t, "facts"),
			program(t, "../../process/testdata/phases"),
			goBuild(t, "heat.test", "test", "-c", "./tiers/heat"))}
	g.checks = append(g.checks, packageTests(3), sourceTests(),
		toolCheck(`0 .*\b4 .*100/100 ns.*50000/50000`, "FAST=0", "NORMAL=0", "SLOW=1-2"))
	g.checks = append(g.checks, placeChecks()...)
	g.checks = append(g.checks, spreadChecks()...)
	g.checks = append(g.checks, limitChecks()...)
	g.checks = append(g.checks, apart(hugeChecks())...)
	g.checks = append(g.checks, apart(capacityChecks())...)
	g.run(t)
}

// TestTwoSockets: two nodes with processors and a third without, of which the firmware
// says only how far they are.
func TestTwoSockets(t *testing.T) {
	t.Parallel()
	g := guest{nodes: "256/1 256/1 256/0", files: guestFiles(t)}
	g.checks = []check{
		packageTests(3),
		toolCheck(`2 .*30 30 10`, "FAST=0-1", "NORMAL=0-1", "SLOW=2"),
		{name: "hot", env: "TA_DEFAULT_HINT=hot", script: "/guest/plain " + blocks,
			judge: on(blockSizes, 0, 1)},
		{name: "cold", env: "TA_DEFAULT_HINT=cold", script: "/guest/plain " + blocks,
			judge: on(blockSizes, 2)},
		{name: "bound to a socket", env: "TA_DEFAULT_HINT=cold",
			script: "taskset 1 /guest/plain " + blocks,
			judge: func(t *testing.T, r *results) {
				numaBackend(t, r, "plain.json", []int{0, 1}, []int{0, 1}, []int{2})
			}},
		{name: "report", script: "/guest/known report", judge: func(t *testing.T, r *results) {
			if s := r.stats(t, "report.json"); s.Sampled || s.Backend != "numa" ||
				!slices.Equal(s.Tiers["slow"].Nodes, []int{2}) {
				t.Errorf("%+v", s)
			}
		}},
	}
	g.checks = append(g.checks, fullNodeChecks()...)
	g.run(t)
}

// apart gives each of three nodes to a tier of its own.
func apart(checks []check) []check {
	for i := range checks {
		if !checks[i].plain {
			checks[i].env = "TA_NODE_FAST=0 TA_NODE_NORMAL=1 TA_NODE_SLOW=2 " + checks[i].env
		}
	}
	return checks
}

// guestFiles builds what both guests get.
func guestFiles(t *testing.T) []string {
	t.Helper()
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Fatal(err) // Debian has it in every installation
	}
	return []string{
		testlib.Lib(t) + "=/guest/libtieralloc.so", perl + "=/guest/perl",
		program(t, "plain"), program(t, "known"),
		goBuild(t, "numa.test", "test", "-c", "./numa"),
		goBuild(t, "plan.test", "test", "-c", "./numa/plan"),
		goBuild(t, "probe.test", "test", "-c", "./numa/probe"),
		testlib.Tool(t),
	}
}

// packageTests runs those of packages numa, probe and plan's own tests that depend on the kernel,
// on the guest's nodes.
func packageTests(nodes int) check {
	return check{name: "package numa", plain: true,
		script: "/guest/numa.test -test.v -test.run 'Bind|Count' && /guest/probe.test -test.v " +
			"-test.run Here && /guest/plan.test -test.v -test.run 'Here|Resolve'",
		judge: func(t *testing.T, r *results) {
			if got := strings.Count(r.stdout, " MiB, distances ["); got != nodes ||
				!strings.HasSuffix(r.stdout, "\nPASS\n") ||
				strings.Contains(r.stdout, "--- SKIP") {
				t.Errorf("%d nodes seen:\n%s", got, r.stdout)
			}
		}}
}

// sourceTests runs those of package heat that depend on the kernel. The guest's has all sources that
// need no hardware.
func sourceTests() check {
	return check{name: "sources of accesses", plain: true,
		script: "/guest/heat.test -test.v -test.run " +
			"'Sources|Stopped|Loses|Rights|Abandoned|OneMapping|Vanished|PassesOver|AllTheTime'",
		judge: func(t *testing.T, r *results) {
			for _, source := range []string{"DAMON", "referenced_bits", "write_protection",
				"soft-dirty_bits"} {
				for _, regions := range []string{"64K", "2M"} {
					if !strings.Contains(r.stdout,
						"--- PASS: TestSources/"+regions+"/"+source+" ") {
						t.Errorf("%s did not pass:\n%s", source, r.stdout)
					}
				}
			}
			if strings.Contains(r.stdout, "--- SKIP") {
				t.Errorf("skipped:\n%s", r.stdout)
			}
		}}
}

// toolCheck looks at what `tierallocctl topology` says: a row of its table, and the
// TA_NODE_* lines.
func toolCheck(row string, lines ...string) check {
	return check{name: "topology", plain: true, script: "/guest/tierallocctl topology",
		judge: func(t *testing.T, r *results) {
			if !regexp.MustCompile(`(?m)^.*` + row).MatchString(r.stdout) {
				t.Errorf("no row %q:\n%s", row, r.stdout)
			}
			for _, line := range lines {
				if !strings.Contains(r.stdout, "export TA_NODE_"+line+"\n") {
					t.Errorf("no line %q:\n%s", line, r.stdout)
				}
			}
		}}
}
