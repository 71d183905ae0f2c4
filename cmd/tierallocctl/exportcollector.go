package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"tieralloc/internal/config"
	"tieralloc/stats"
	"tieralloc/stats/live"
)

// Metrics that are not in a table.
var (
	callsDesc = newDesc("calls_total", "Calls by function. Absent: none.", callLabels)
	nodeDesc  = newDesc("tier_resident_bytes",
		"Memory of the tier that is resident on the NUMA node, as the kernel says.", nodeLabels)
	processesDesc = newDesc("export_processes", "Processes whose figures were read.", nil)
	problemsDesc  = newDesc("export_problems",
		"Live pages that cannot be read, and limits on the number of pages that were met.", nil)
	durationDesc = newDesc("export_duration_seconds", "Time that reading all pages took.", nil)
)

// exporter is a prometheus.Collector of the processes that have live pages. It reads the pages at
// each scrape. Scrapes may overlap.
type exporter struct {
	pages   func(use func(*live.Page) error) error
	groups  func() ([]*processGroup, error)
	counts  func(*live.Page) bool // whether the page's process is exported
	problem func(error)           // gets what is wrong with pages, nil if nothing is
}

func newExporter(problem func(error)) *exporter {
	return &exporter{
		pages:   func(use func(*live.Page) error) error { return eachPage(perUser, use) },
		groups:  allGroups,
		counts:  isOfProcess,
		problem: problem,
	}
}

// registry returns a registry that has the exporter's metrics only.
func (e *exporter) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(e)
	return r
}

// isOfProcess reports whether a running process keeps the page. A page that no process is known to
// have mapped may name any process; it counts if the process runs as the file's owner.
func isOfProcess(file *live.Page) bool {
	return file.State() == live.Running &&
		(file.Mapped() || slices.Contains(usersOf(file.Pid()), strconv.Itoa(file.Owner())))
}

// usersOf returns the numbers of the users as whom a process runs.
func usersOf(pid int) []string {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(status)) {
		if users, ok := strings.CutPrefix(line, "Uid:"); ok {
			return strings.Fields(users)
		}
	}
	return nil
}

// eachProcess calls use for each running process whose figures can be read, once for a process. The
// snapshot is valid until use returns.
func (e *exporter) eachProcess(use func(pid int, program string, s *live.Snapshot)) error {
	seen, s := map[int]bool{}, new(live.Snapshot)
	return e.pages(func(file *live.Page) error {
		if seen[file.Pid()] || !e.counts(file) {
			return nil
		}
		if err := file.Read(s); err != nil || s.Updates == 0 {
			return err
		}
		seen[file.Pid()] = true
		use(file.Pid(), printable(file.Program()), s)
		return nil
	})
}

// Describe is for the registry.
func (e *exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{callsDesc, nodeDesc, processesDesc, problemsDesc,
		durationDesc} {
		ch <- d
	}
	describeAll(ch, processFamilies)
	describeAll(ch, tierFamilies)
	describeAll(ch, tierCaps)
	describeAll(ch, tierHeat)
	describeAll(ch, moveFamilies)
	describeAll(ch, deviceFamilies)
	describeAll(ch, deviceCaps)
	ch <- membersDesc
	describeAll(ch, groupFamilies)
	describeAll(ch, groupCaps)
}

func describeAll[T any](ch chan<- *prometheus.Desc, families []family[T]) {
	for _, f := range families {
		ch <- f.desc
	}
}

// Collect reads all pages.
func (e *exporter) Collect(ch chan<- prometheus.Metric) {
	began, processes := time.Now(), 0
	err := e.eachProcess(func(pid int, program string, s *live.Snapshot) {
		processes++
		collectProcess(ch, pid, program, s)
	})
	groups, bad := e.groups()
	collectGroups(ch, groups)
	err = errors.Join(err, bad)
	e.problem(err)
	one := func(d *prometheus.Desc, value float64) {
		ch <- &series{d, nil, prometheus.GaugeValue, value}
	}
	one(processesDesc, float64(processes))
	one(problemsDesc, float64(errorCount(err)))
	one(durationDesc, time.Since(began).Seconds())
}

// errorCount counts the errors that are joined in err.
func errorCount(err error) (n int) {
	if err == nil {
		return 0
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return 1
	}
	for _, part := range joined.Unwrap() {
		n += errorCount(part)
	}
	return n
}

func collectProcess(ch chan<- prometheus.Metric, pid int, program string, s *live.Snapshot) {
	number := strconv.Itoa(pid)
	collect(ch, processFamilies, labelPairs(processLabels, number, program), s)
	for call, n := range s.Calls[:stats.CallCount] {
		if n > 0 {
			ch <- &series{callsDesc, labelPairs(callLabels, stats.CallName(uintptr(call)), number,
				program), prometheus.CounterValue, float64(n)}
		}
	}
	for i := range s.Tiers[:stats.TierCount] {
		collectTier(ch, number, program, config.TierWord(uint32(i)), s, &s.Tiers[i])
	}
	if s.Follows != 0 {
		for _, kind := range moveKinds {
			collect(ch, moveFamilies, labelPairs(moveLabels, kind.name, number, program),
				kind.of(&s.Following))
		}
	}
	seen := map[uint64]bool{} // a damaged page may name a device twice
	for i := range s.Devices[:min(s.DeviceCount, stats.DeviceMax)] {
		if d := &s.Devices[i]; !seen[d.Ordinal] {
			seen[d.Ordinal] = true
			labels := labelPairs(deviceLabels, strconv.FormatUint(d.Ordinal, 10), number, program,
				uuidText(d.Uuid))
			collect(ch, deviceFamilies, labels, d)
			collectSet(ch, deviceCaps, labels, d)
		}
	}
}

// collectTier collects a tier, unless it has no cap and never had memory.
func collectTier(ch chan<- prometheus.Metric, pid, program, name string, s *live.Snapshot,
	t *stats.Tier) {
	if t.BytesPeak|t.BytesCurrent|t.BytesEntered|t.CapacitySoft|t.CapacityHard == 0 {
		return
	}
	labels := labelPairs(tierLabels, pid, program, name)
	collect(ch, tierFamilies, labels, t)
	collectSet(ch, tierCaps, labels, t)
	if s.Follows != 0 {
		collect(ch, tierHeat, labels, t)
	}
	seen := map[uint64]bool{} // a damaged page may name a node twice
	for i, node := range s.Nodes[:min(s.NodeCount, stats.NodeMax)] {
		if !seen[node] {
			seen[node] = true
			ch <- &series{nodeDesc, labelPairs(nodeLabels, strconv.FormatUint(node, 10), pid,
				program, name), prometheus.GaugeValue, float64(t.BytesPerNode[i])}
		}
	}
}

func collect[T any](ch chan<- prometheus.Metric, families []family[T], labels []*dto.LabelPair,
	of T) {
	for _, f := range families {
		ch <- &series{f.desc, labels, f.kind, f.value(of)}
	}
}

// collectSet collects the values that are not 0.
func collectSet[T any](ch chan<- prometheus.Metric, families []family[T], labels []*dto.LabelPair,
	of T) {
	for _, f := range families {
		if v := f.value(of); v != 0 {
			ch <- &series{f.desc, labels, f.kind, v}
		}
	}
}

// series is a prometheus.Metric. Unlike those that prometheus.NewConstMetric makes, the series of a
// process or tier share their labels: a scrape of many processes has tens of thousands of series.
type series struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	kind   prometheus.ValueType
	value  float64
}

// Desc is for the registry.
func (s *series) Desc() *prometheus.Desc { return s.desc }

// Write is for the registry.
func (s *series) Write(m *dto.Metric) error {
	m.Label = s.labels
	if s.kind == prometheus.CounterValue {
		m.Counter = &dto.Counter{Value: &s.value}
	} else {
		m.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

// labelPairs pairs the names, which are sorted, with values.
func labelPairs(names []string, values ...string) []*dto.LabelPair {
	pairs := make([]*dto.LabelPair, len(names))
	for i := range names {
		pairs[i] = &dto.LabelPair{Name: &names[i], Value: &values[i]}
	}
	return pairs
}
