package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// writeJSON writes v for people to read.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// newTable returns a table of plain columns without borders.
func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	if header != nil {
		t.AppendHeader(header)
	}
	return t
}

// alignRight aligns columns, counted from 1, to the right.
func alignRight(t table.Writer, columns ...int) {
	var configs []table.ColumnConfig
	for _, n := range columns {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight,
			AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
}

// printable replaces characters that could control a terminal: a program chooses its own name.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, s)
}

// escapeJSON escapes characters that could control a terminal. Valid JSON has them only within
// strings.
func escapeJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r) || r == '\n' || r == '\t':
			out = utf8.AppendRune(out, r)
		case r == '\r': // between strings
			out = append(out, ' ')
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
	}
	return out
}

// summarize writes the most important figures of a report.
func summarize(w io.Writer, r *report) {
	t := newTable("tier", "current", "peak", "soft cap", "hard cap", "allocs", "frees",
		"violations",
		"rerouted", "wait", "moved", "failed")
	alignRight(t, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	for i, tier := range r.tiers() {
		t.AppendRow(table.Row{tierNames[i], size(tier.BytesCurrent), size(tier.BytesPeak),
			limit(tier.CapacitySoft), limit(tier.CapacityHard), count(tier.AllocCalls),
			count(tier.FreeCalls),
			count(tier.CapacityViolations), count(tier.Rerouted + tier.RoutedSlow),
			duration(tier.SimulatedWaitNs),
			count(tier.Migrations.MovedPages), count(tier.Migrations.FailedPages)})
	}
	fmt.Fprintf(w, "%s (process %d): heap peak %s, live %s in %s; tiers %s\n",
		r.Program, r.Pid, size(r.Heap.BytesPeak), size(r.Heap.BytesLive),
		plural(r.Heap.BlocksLive, "block"), r.Backend)
	fmt.Fprintln(w, t.Render())
	writeLines(w, slices.Concat(sameInReport(r), overflowInReport(r), followingInReport(r)))
	fmt.Fprintln(w, "allocs and frees count blocks, violations and rerouted requests, moved and "+
		"failed memory pages;"+
		" wait is the time charged for throttling")
	summarizeDevices(w, r)
}

// describe writes all figures of a report: the heap as a whole, the tiers, the calls, the devices,
// the memory managers and the sites.
func describe(w io.Writer, r *report) {
	h := r.Heap
	fmt.Fprintf(w, "%s (process %d), after %s; tiers %s\n", r.Program, r.Pid, duration(r.UptimeNs),
		r.Backend)
	p := &r.Policy
	if p.DefaultHint != "" {
		fmt.Fprintf(w, "policy: default hint %s, %s, over soft %s, at hard %s, throttle %s, "+
			"model %s\n",
			p.DefaultHint, plural(p.Rules, "rule"), p.OnSoftcap, p.OnHardcap, p.Throttle, p.Model)
	}
	if g := p.Group; p.Grouped && g != nil {
		fmt.Fprintf(w, "caps: of the group of processes %s (TA_GROUP), %s of each kept for this"+
			" one\n", printable(g.Name), size(g.BytesMin))
	}
	fmt.Fprintf(w, "heap: mapped %s, committed %s, cached %s, peak %s\n",
		size(h.BytesMapped), size(h.BytesCommitted), size(h.BytesCached), size(h.BytesPeak))
	fmt.Fprintf(w, "blocks: live %s in %s, allocated %s, freed %s, failed calls %s\n\n",
		count(h.BlocksLive), size(h.BytesLive), count(h.BlocksTotalAlloc),
		count(h.BlocksTotalFreed), count(r.CallsFailed))
	fmt.Fprintln(w, tierTable(r).Render())
	writeLines(w, slices.Concat(sameInReport(r), overflowInReport(r), followingInReport(r)))
	fmt.Fprintln(w)
	fmt.Fprintln(w, callTable(r).Render())
	describeDevices(w, r)
	describeManagers(w, r)
	describeSites(w, r)
}

// figure is a row of the table of tiers.
type figure struct {
	name string
	of   func(t *tier) string
}

func tierTable(r *report) table.Writer {
	t := newTable("tier", tierNames[0], tierNames[1], tierNames[2])
	alignRight(t, 2, 3, 4)
	for _, f := range figures {
		row := table.Row{f.name}
		for _, tier := range r.tiers() {
			row = append(row, f.of(tier))
		}
		t.AppendRow(row)
	}
	for _, node := range r.Nodes {
		key := strconv.Itoa(node)
		row := table.Row{"on node " + key}
		for _, tier := range r.tiers() {
			row = append(row, estimate(tier.BytesPerNode[key], r.BytesPerNodeSampled))
		}
		t.AppendRow(row)
	}
	return t
}

// estimate writes a size, which may be scaled from a sample.
func estimate(n uint64, sampled bool) string {
	if sampled {
		return "~" + size(n)
	}
	return size(n)
}

func throttleWords(t *tier) string {
	var parts []string
	if t.ThrottleBW != 0 {
		parts = append(parts, size(t.ThrottleBW)+"/s")
	}
	if t.ThrottleLatNs != 0 {
		parts = append(parts, duration(t.ThrottleLatNs)+" each")
	}
	if parts == nil {
		return none
	}
	return strings.Join(parts, ", ")
}

// callTable shows the functions that were called.
func callTable(r *report) table.Writer {
	t := newTable("function", "calls")
	alignRight(t, 2)
	names := make([]string, 0, len(r.Calls))
	for name, n := range r.Calls {
		if n != 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if r.Calls[a] != r.Calls[b] {
			return compareDown(r.Calls[a], r.Calls[b])
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		t.AppendRow(table.Row{name, count(r.Calls[name])})
	}
	return t
}

// compareDown is cmp.Compare in descending order.
func compareDown[T uint64 | float64](a, b T) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}
