package main

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"

	"tieralloc/internal/config"
	"tieralloc/stats"
	"tieralloc/stats/live"
)

// Metrics that are not in a table.
var (
	callsDesc = newDesc("calls_total", "Calls by function. Absent: none.", ofCall)
	nodeDesc  = newDesc("tier_resident_bytes",
		"Memory of the tier that is resident on the NUMA node, as the kernel says.", ofNode)
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
	if file.State() != live.Running || file.Mapped() {
		return file.State() == live.Running
	}
	var status procfs.ProcStatus
	p, err := procfs.NewProc(file.Pid())
	if err == nil {
		status, err = p.NewStatus()
	}
	return err == nil && slices.Contains(status.UIDs[:], uint64(file.Owner()))
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
	for _, d := range descs {
		ch <- d
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
	ch <- gaugeOf(processesDesc, float64(processes))
	ch <- gaugeOf(problemsDesc, float64(errorCount(err)))
	ch <- gaugeOf(durationDesc, time.Since(began).Seconds())
}

func gaugeOf(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
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

func collectProcess(ch chan<- prometheus.Metric, number int, program string, s *live.Snapshot) {
	pid := strconv.Itoa(number)
	collect(ch, processFamilies, s, pid, program)
	for call, n := range s.Calls[:stats.CallCount] {
		if n > 0 {
			ch <- prometheus.MustNewConstMetric(callsDesc, prometheus.CounterValue, float64(n), pid,
				program, stats.CallName(uintptr(call)))
		}
	}
	for i := range s.Tiers[:stats.TierCount] {
		collectTier(ch, pid, program, config.TierWord(uint32(i)), s, &s.Tiers[i])
	}
	if s.Follows != 0 {
		for _, kind := range moveKinds {
			collect(ch, moveFamilies, kind.of(&s.Following), pid, program, kind.name)
		}
	}
	seen := map[uint64]bool{} // a damaged page may name a device twice
	for i := range s.Devices[:min(s.DeviceCount, stats.DeviceMax)] {
		if d := &s.Devices[i]; !seen[d.Ordinal] {
			seen[d.Ordinal] = true
			collect(ch, deviceFamilies, d, pid, program, strconv.FormatUint(d.Ordinal, 10),
				uuidText(d.Uuid))
		}
	}
}

// collectTier collects a tier, unless it has no cap and never had memory.
func collectTier(ch chan<- prometheus.Metric, pid, program, name string, s *live.Snapshot,
	t *stats.Tier) {
	if t.BytesPeak|t.BytesCurrent|t.BytesEntered|t.CapacitySoft|t.CapacityHard == 0 {
		return
	}
	collect(ch, tierFamilies, t, pid, program, name)
	if s.Follows != 0 {
		collect(ch, tierHeat, t, pid, program, name)
	}
	seen := map[uint64]bool{} // a damaged page may name a node twice
	for i, node := range s.Nodes[:min(s.NodeCount, stats.NodeMax)] {
		if !seen[node] {
			seen[node] = true
			ch <- gaugeOf(nodeDesc, float64(t.BytesPerNode[i]), pid, program, name,
				strconv.FormatUint(node, 10))
		}
	}
}

// collect collects families that have the same labels.
func collect[T any](ch chan<- prometheus.Metric, families []family[T], of T, labels ...string) {
	pairs := prometheus.MakeLabelPairs(families[0].desc, labels)
	for _, f := range families {
		if v := f.value(of); v != 0 || !f.set {
			ch <- &series{f.desc, pairs, f.kind, v}
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
