package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// recordRows is the number of processes in the summary.
const recordRows = 10

// title says what was recorded.
func (r *recording) title() string {
	what := strings.Join(r.Command, " ")
	if len(r.Command) == 0 {
		what = "processes"
		if len(r.processes) > 0 {
			what = r.processes[0].name()
		}
	}
	if n := []rune(what); len(n) > 60 {
		what = string(n[:57]) + "..."
	}
	return fmt.Sprintf("%s: %s from %s, %s", what, seconds(r.end),
		time.Unix(0, r.StartUnixNs).Format(time.DateTime), plural(len(r.processes), "process"))
}

// summary writes the peaks, and what the caps did.
func (r *recording) summary(w io.Writer) {
	fmt.Fprintln(w, r.title())
	if !r.whole {
		fmt.Fprintf(w, "the recording was cut off after %s\n", seconds(r.end))
	}
	if len(r.processes) == 0 {
		fmt.Fprintln(w, "no process had a live page")
		return
	}
	t := newTable("", ">peak", ">at", ">caps met", ">refused", ">moved out")
	row := func(title, figure, owner string) {
		top := highest(total(r.processes, figure))
		if top.v == 0 {
			return
		}
		met, refused, moved := none, none, none
		if owner != "" {
			met = count(r.countedIn(owner+".soft_met") + r.countedIn(owner+".hard_met"))
			refused = count(r.countedIn(owner + ".refused"))
			moved = size(r.countedIn(owner + ".moved"))
		}
		t.AppendRow(table.Row{title, size(top.v), seconds(top.t), met, refused, moved})
	}
	row("resident", "resident", "")
	row("live", "live", "")
	row(liveOld, "live_old", "")
	for _, owner := range owners(r.processes) {
		row(ownerTitle(owner), owner+".charged", owner)
	}
	fmt.Fprintln(w, t.Render())
	r.processTable(w)
}

// processTable writes the largest processes.
func (r *recording) processTable(w io.Writer) {
	list := r.largest()
	t := newTable(">pid", "program", ">from", ">to", ">peak", ">at", "end")
	for _, p := range list[:min(len(list), recordRows)] {
		top := highest(p.curve("committed"))
		how := p.how
		if how == "" {
			how = "still running"
		}
		from := seconds(p.begin)
		if p.Start < 0 {
			from = "before"
		}
		t.AppendRow(table.Row{p.Pid, p.Program, from, seconds(p.end), size(top.v), seconds(top.t),
			how})
	}
	fmt.Fprintln(w, t.Render())
	if n := len(list) - recordRows; n > 0 {
		fmt.Fprintf(w, "%s with smaller peaks\n", plural(n, "process"))
	}
}
