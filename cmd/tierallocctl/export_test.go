package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"tieralloc/internal/testlib"
	"tieralloc/stats"
	"tieralloc/stats/live"
)

// livePageOf is the contents of a live page of a process.
func livePageOf(pid uint64, program string, fill func(*stats.Figures)) []byte {
	text := someLivePage()
	page := (*stats.LivePage)(unsafe.Pointer(unsafe.SliceData(text)))
	page.Head.Pid = pid
	page.Head.ProgramLen = uint64(copy(page.Head.Program[:], program))
	fill(&page.Buffers[1].Figures)
	return text
}

// fullFigures has something of everything.
func fullFigures(f *stats.Figures) {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(f)), unsafe.Sizeof(*f)/8)
	for i := range words {
		words[i] = 2e9 + uint64(i)
	}
	f.Follows, f.DeviceCount, f.NodeCount = 1, 2, 2
}

// usualFigures are those of a program that uses one tier.
func usualFigures(f *stats.Figures) {
	f.Heap.BytesCommitted, f.Heap.BytesLive = 2<<30, 1<<30
	f.Calls[stats.CallMalloc], f.Calls[stats.CallFree] = 100, 90
	f.Tiers[stats.TierNormal] = stats.Tier{BytesCurrent: 2 << 30, BytesPeak: 3 << 30,
		BytesEntered: 5 << 30, BytesLeft: 4 << 30, CapacityHard: 8 << 30}
	f.NodeCount = 1
	f.Tiers[stats.TierNormal].BytesPerNode[0] = 123 << 20
}

// exporterOf exports pages whose processes are taken for running. problems gets what is wrong.
func exporterOf(tb testing.TB, problems *error, pages ...[]byte) *exporter {
	tb.Helper()
	dir := tb.TempDir()
	for i, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), text, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return &exporter{
		groups: func() ([]*processGroup, error) {
			g := &processGroup{Name: "train", Accounts: []groupAccount{{Name: "FAST", Used: 1,
				Granted: 2, SoftCap: 3, HardCap: 4}}, Members: []groupMember{{Pid: 1}}}
			return []*processGroup{g}, nil
		},
		pages: func(use func(*live.Page) error) error {
			var bad []error
			for i := range pages {
				bad = append(bad, inFolder(filepath.Join(dir, fmt.Sprint(i)), use))
			}
			return errors.Join(bad...)
		},
		counts:  func(*live.Page) bool { return true },
		problem: func(err error) { *problems = err },
	}
}

// exported are the metrics of some pages, by their names, as a reader of the text finds them.
func exported(t *testing.T, e *exporter) map[string]*dto.MetricFamily {
	t.Helper()
	var text bytes.Buffer
	if err := e.print(&text); err != nil {
		t.Fatal(err)
	}
	tame(t, text.String())
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text.String())
	}
	return families
}

// seriesOf writes the series of a process, sorted.
func seriesOf(families map[string]*dto.MetricFamily, pid string) (list []string) {
	for name, f := range families {
		for _, m := range f.Metric {
			labels, ofPid := "", false
			for _, l := range m.Label {
				labels += fmt.Sprintf(" %s=%q", l.GetName(), l.GetValue())
				ofPid = ofPid || l.GetName() == "pid" && l.GetValue() == pid
			}
			if ofPid {
				list = append(list, fmt.Sprint(name, labels, " ",
					m.GetCounter().GetValue()+m.GetGauge().GetValue()))
			}
		}
	}
	slices.Sort(list)
	return list
}

// TestExportLint: each metric that the exporter knows is in the text of a page that has everything,
// and no name or help text is against Prometheus's conventions.
func TestExportLint(t *testing.T) {
	var problems error
	e := exporterOf(t, &problems, livePageOf(7, "full", fullFigures))
	families := exported(t, e)
	if problems != nil {
		t.Error(problems)
	}
	known := make(chan *prometheus.Desc)
	go func() { e.Describe(known); close(known) }()
	count := 0
	for d := range known {
		count++
		name, _, _ := strings.Cut(strings.TrimPrefix(d.String(), `Desc{fqName: "`), `"`)
		if families[name] == nil || !strings.HasSuffix(families[name].GetHelp(), ".") {
			t.Errorf("%s: %v", name, families[name])
		}
	}
	if count != len(families) {
		t.Errorf("%d of %d metrics", len(families), count)
	}
	lint, err := promlint.NewWithMetricFamilies(
		slices.Collect(maps.Values(families))).Lint()
	if err != nil || len(lint) > 0 {
		t.Errorf("%v, %v", lint, err)
	}
}

// TestExportSeries: these and no others are the series of a program that uses one tier.
func TestExportSeries(t *testing.T) {
	var problems error
	families := exported(t, exporterOf(t, &problems, livePageOf(7, "usual", usualFigures),
		livePageOf(7, "again", usualFigures), livePageOf(8, "idle", func(*stats.Figures) {})))
	if problems != nil {
		t.Error(problems)
	}
	list := seriesOf(families, "7")
	const of = ` pid="7" program="usual"`
	for _, want := range []string{
		"tieralloc_heap_committed_bytes" + of + " 2.147483648e+09",
		`tieralloc_calls_total function="malloc"` + of + " 100",
		`tieralloc_calls_total function="free"` + of + " 90",
		"tieralloc_tier_charged_bytes" + of + ` tier="normal" 2.147483648e+09`,
		"tieralloc_tier_live_bytes" + of + ` tier="normal" 1.073741824e+09`,
		"tieralloc_tier_cached_bytes" + of + ` tier="normal" 1.073741824e+09`,
		"tieralloc_tier_hard_cap_bytes" + of + ` tier="normal" 8.589934592e+09`,
		`tieralloc_tier_resident_bytes node="0"` + of + ` tier="normal" 1.28974848e+08`,
	} {
		if !slices.Contains(list, want) {
			t.Errorf("%s is missing in\n%s", want, strings.Join(list, "\n"))
		}
	}
	const functions, nodes, noSoftCap = 2, 1, -1
	if want := len(processFamilies) + functions + len(tierFamilies) + nodes + noSoftCap; len(
		list) != want {
		t.Errorf("%d series, not %d:\n%s", len(list), want, strings.Join(list, "\n"))
	}
	if n := len(seriesOf(families, "8")); n != len(processFamilies) {
		t.Errorf("%d series of a process that allocates nothing", n)
	}
	if n := families["tieralloc_export_processes"].Metric[0].Gauge.GetValue(); n != 2 {
		t.Errorf("%v processes", n)
	}
}

// TestExportDamaged: no page spoils the metrics of others or the format, whatever it holds.
func TestExportDamaged(t *testing.T) {
	good := livePageOf(7, "good", fullFigures)
	var problems error
	want := seriesOf(exported(t, exporterOf(t, &problems, good)), "7")
	random := rand.New(rand.NewPCG(5, 6))
	read, bad := 0, 0
	for range 20 {
		pages := [][]byte{good}
		for i := range 30 {
			text := livePageOf(uint64(100+i), "x"+hostileBytes[i%len(hostileBytes)]+"\"\\\n{}#",
				func(f *stats.Figures) {
					if i%2 == 0 {
						words := unsafe.Slice((*uint64)(unsafe.Pointer(f)), unsafe.Sizeof(*f)/8)
						for k := range words {
							words[k] = random.Uint64()
						}
					} else { // each device and node twice
						f.DeviceCount, f.NodeCount = ^uint64(0), ^uint64(0)
						f.Tiers[0].BytesCurrent = 1
					}
				})
			if i%3 == 0 {
				text = damage(random, text, hostileBytes)
			}
			pages = append(pages, text)
		}
		families := exported(t, exporterOf(t, &problems, pages...))
		if got := seriesOf(families, "7"); !slices.Equal(got, want) {
			t.Fatalf("the good page's series are\n%s", strings.Join(got, "\n"))
		}
		read += int(families["tieralloc_export_processes"].Metric[0].Gauge.GetValue())
		if got := families["tieralloc_export_problems"].Metric[0].Gauge.GetValue(); int(got) !=
			errorCount(problems) {
			t.Errorf("%v problems: %v", got, problems)
		}
		bad += errorCount(problems)
	}
	if read < 400 || bad == 0 {
		t.Errorf("%d processes, %d problems", read, bad)
	}
}

// TestExportTextfile: the file is whole, readable by all, and alone in its folder.
func TestExportTextfile(t *testing.T) {
	var problems error
	e := exporterOf(t, &problems, livePageOf(7, "usual", usualFigures))
	dir := t.TempDir()
	path := filepath.Join(dir, "tieralloc.prom")
	for range 2 {
		if err := e.writeTextfile(path); err != nil {
			t.Fatal(err)
		}
	}
	testlib.OnlyFiles(t, dir, "tieralloc.prom")
	text, err := os.ReadFile(path)
	info, _ := os.Stat(path)
	if err != nil || info.Mode() != 0o644 || !strings.Contains(string(text), `program="usual"`) {
		t.Errorf("%v, %v\n%s", err, info.Mode(), text)
	}
	for _, bad := range []string{"metrics.txt", filepath.Join(dir, "none", "x.prom"), ""} {
		err := e.writeTextfile(bad)
		if err == nil || !strings.HasPrefix(err.Error(), "--textfile "+bad+": ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.prom"), 0o700); err != nil {
		t.Fatal(err)
	}
	if e.writeTextfile(filepath.Join(dir, "folder.prom")) == nil {
		t.Error("a folder was replaced")
	}
	testlib.OnlyFiles(t, dir, "folder.prom", "tieralloc.prom")
}

var metricName = regexp.MustCompile(`tieralloc_[a-z0-9_]+`)

// TestExportDashboard: each metric in the example dashboard exists, and its labels.
func TestExportDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testlib.Root(), "docs/examples/grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Error("no JSON")
	}
	var problems error
	families := exported(t, exporterOf(t, &problems, livePageOf(7, "full", fullFigures)))
	names := metricName.FindAllString(string(text), -1)
	for _, name := range names {
		if families[name] == nil {
			t.Errorf("there is no metric %s", name)
		}
	}
	if len(names) < 15 {
		t.Errorf("only %d metrics", len(names))
	}
}

// BenchmarkExport is a scrape of 1,000 processes that use one tier each, or all three.
func BenchmarkExport(b *testing.B) {
	for name, fill := range map[string]func(*stats.Figures){
		"one": usualFigures,
		"three": func(f *stats.Figures) {
			usualFigures(f)
			f.Tiers[0], f.Tiers[2] = f.Tiers[1], f.Tiers[1]
		},
	} {
		b.Run(name, func(b *testing.B) {
			var pages [][]byte
			for i := range 1000 {
				pages = append(pages, livePageOf(uint64(1000+i), "program", fill))
			}
			var problems error
			e := exporterOf(b, &problems, pages...)
			var text bytes.Buffer
			for b.Loop() {
				text.Reset()
				if err := e.print(&text); err != nil || problems != nil {
					b.Fatal(err, problems)
				}
			}
			b.ReportMetric(float64(bytes.Count(text.Bytes(), []byte("\ntieralloc_"))), "series")
		})
	}
}
