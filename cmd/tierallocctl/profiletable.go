package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// A profileRow is what a function allocated: itself, and with the functions that it called.
type profileRow struct {
	name      string
	flat, cum int64
}

// A profileTable has a row for each function. Of two profiles its values are differences.
type profileTable struct {
	title  string
	kind   string // sample type
	memory string
	unit   string
	diff   bool
	total  int64 // of the earlier profile, if there are two
	grown  int64 // difference of the totals
	rows   []*profileRow
	notes  []string
}

// tables writes the table of the host, and those of devices.
func (f *profileFile) tables(w io.Writer, old *profileFile, kind, lines int) {
	all := deviceTables(f, old, kind)
	if !strings.HasPrefix(f.profile.SampleType[kind].Type, deviceTypes) {
		all = append([]*profileTable{newProfileTable(f, old, kind, "")}, all...)
	}
	for i, t := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		t.write(w, lines)
	}
}

// newProfileTable makes the table of the host, "", or of the memory of a device.
func newProfileTable(f, old *profileFile, kind int, memory string) *profileTable {
	t := &profileTable{title: f.title(), kind: f.typeNames()[kind], memory: memory,
		unit: f.profile.SampleType[kind].Unit, diff: old != nil, notes: f.notes()}
	if memory != "" {
		t.title, t.notes = memory, nil
	}
	byName := map[string]*profileRow{}
	t.total = t.add(byName, f, kind, 1)
	if old != nil {
		now := t.total
		t.total = -t.add(byName, old, kind, -1)
		t.grown = now - t.total
	}
	t.rows = slices.DeleteFunc(t.rows, func(r *profileRow) bool {
		return r.flat == 0 && r.cum == 0
	})
	slices.SortFunc(t.rows, func(a, b *profileRow) int {
		return cmp.Or(cmp.Compare(magnitude(b.flat), magnitude(a.flat)),
			cmp.Compare(magnitude(b.cum), magnitude(a.cum)), cmp.Compare(a.name, b.name))
	})
	return t
}

// add adds the samples of a profile, each times sign, and returns their sum. A function that is in
// a stack more than once counts once.
func (t *profileTable) add(byName map[string]*profileRow, f *profileFile, kind int,
	sign int64) (sum int64) {
	for _, s := range f.profile.Sample {
		if memoryOf(s) != t.memory {
			continue
		}
		value := sign * s.Value[kind]
		sum += value
		seen := map[string]bool{}
		for i, frame := range frames(s) {
			r := byName[frame.name]
			if r == nil {
				r = &profileRow{name: frame.name}
				byName[frame.name] = r
				t.rows = append(t.rows, r)
			}
			if i == 0 {
				r.flat += value
			}
			if !seen[frame.name] {
				seen[frame.name] = true
				r.cum += value
			}
		}
	}
	return sum
}

// write writes the first lines of the table; 0 stands for all.
func (t *profileTable) write(w io.Writer, lines int) {
	words := amount
	if t.diff {
		words = change
		fmt.Fprintf(w, "%s: %s %s, from %s to %s\n", t.title, t.kind, change(t.grown, t.unit),
			amount(t.total, t.unit), amount(t.total+t.grown, t.unit))
	} else {
		fmt.Fprintf(w, "%s: %s %s\n", t.title, t.kind, amount(t.total, t.unit))
	}
	writeLines(w, t.notes)
	rows := t.rows
	if lines > 0 && lines < len(rows) {
		rows = rows[:lines]
	}
	if len(rows) > 0 {
		out := newTable(">flat", ">flat%", ">cum", ">cum%", "function")
		for _, r := range rows {
			out.AppendRow(table.Row{words(r.flat, t.unit), share(r.flat, t.total),
				words(r.cum, t.unit), share(r.cum, t.total), shortName(r.name)})
		}
		fmt.Fprintln(w, out.Render())
	}
	if more := len(t.rows) - len(rows); more > 0 {
		fmt.Fprintf(w, "and %s (--lines 0 shows all)\n", plural(more, "function"))
	}
}

// notes tells how exact a profile is.
func (f *profileFile) notes() (lines []string) {
	p := f.profile
	if len(p.Sample) == 0 {
		return []string{"the profile has no samples"}
	}
	if p.Period > 1 && p.PeriodType != nil && p.PeriodType.Unit == "bytes" {
		line := "estimates from one sample every " + size(uint64(p.Period))
		farthest, err := strconv.ParseInt(comment(p, "bytes between samples at most"), 10, 64)
		if err == nil && farthest > p.Period {
			line += ", in some threads every " + size(uint64(farthest))
		}
		lines = append(lines, line)
	}
	if n := comment(p, "stacks shortened"); n != "" && n != "0" {
		lines = append(lines, printable(n)+
			" samples have the innermost frames only: there were too many different stacks")
	}
	if n := comment(p, "dropped"); n != "" && n != "0" {
		lines = append(lines, printable(n)+" samples were dropped: there was no room for more")
	}
	return lines
}
