package main

import (
	"cmp"
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

// newTable returns a table of plain columns without borders. Where a header begins with >, its
// column is aligned to the right.
func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	var right []table.ColumnConfig
	for i, name := range header {
		if plain, ok := strings.CutPrefix(name.(string), ">"); ok {
			header[i] = plain
			right = append(right, table.ColumnConfig{Number: i + 1, Align: text.AlignRight,
				AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(right)
	if header != nil {
		t.AppendHeader(header)
	}
	return t
}

// figure is a row or a column of a table of Ts.
type figure[T any] struct {
	name string
	of   func(T) string
}

// tableOf returns a table with a column for each figure.
func tableOf[T any](figures []figure[T], list []T) table.Writer {
	var header table.Row
	for _, f := range figures {
		header = append(header, f.name)
	}
	t := newTable(header...)
	for _, of := range list {
		var row table.Row
		for _, f := range figures {
			row = append(row, f.of(of))
		}
		t.AppendRow(row)
	}
	return t
}

// appendRows appends a row for each figure.
func appendRows[T any](t table.Writer, figures []figure[T], list []T) {
	for _, f := range figures {
		row := table.Row{f.name}
		for _, of := range list {
			row = append(row, f.of(of))
		}
		t.AppendRow(row)
	}
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
	t := newTable("tier", ">current", ">peak", ">soft cap", ">hard cap", ">allocs", ">frees",
		">violations", ">rerouted", ">wait", ">moved", ">failed")
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

func tierTable(r *report) table.Writer {
	t := newTable("tier", ">"+tierNames[0], ">"+tierNames[1], ">"+tierNames[2])
	tiers := r.tiers()
	appendRows(t, tierFigures, tiers[:])
	for _, node := range r.Nodes {
		key := strconv.Itoa(node)
		row := table.Row{"on node " + key}
		for _, tier := range tiers {
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
	t := newTable("function", ">calls")
	names := make([]string, 0, len(r.Calls))
	for name, n := range r.Calls {
		if n != 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Calls[b], r.Calls[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		t.AppendRow(table.Row{name, count(r.Calls[name])})
	}
	return t
}
