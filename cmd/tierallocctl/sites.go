package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

const (
	siteLines  = 10 // of the table
	siteFrames = 4  // of a stack
)

// lifetime returns the median lifetime of a site's blocks, or none where no block was freed.
func (s *site) lifetime() string {
	if s.LifetimeMedianNs == nil {
		return none
	}
	return duration(*s.LifetimeMedianNs)
}

// calls returns the innermost frames of a site.
func (s *site) calls() string {
	shown := s.Stack[:min(len(s.Stack), siteFrames)]
	if len(shown) == 0 {
		return none
	}
	text := strings.Join(shown, " < ")
	if len(shown) < len(s.Stack) {
		text += " < …"
	}
	return text
}

// describeSites writes a table of the stacks that have allocated most. The report has no folders of
// files, so there are no names of functions.
func describeSites(w io.Writer, r *report) {
	if len(r.Sites) == 0 {
		return
	}
	var header table.Row
	for _, f := range siteFigures {
		header = append(header, f.name)
	}
	t := newTable(header...)
	alignRight(t, 1, 2, 3, 4, 5, 6, 7)
	for _, s := range r.Sites[:min(len(r.Sites), siteLines)] {
		var row table.Row
		for _, f := range siteFigures {
			row = append(row, f.of(s))
		}
		t.AppendRow(row)
	}
	fmt.Fprintf(w, "\nstacks that allocated most, estimated; sizes and lifetimes are medians, "+
		"calls are the innermost first\n%s\n", t.Render())
	if more := len(r.Sites) - siteLines; more > 0 {
		fmt.Fprintf(w, "and %s, which --json shows\n", plural(more, "stack"))
	}
}

// siteFigure is a column of the table of sites.
type siteFigure struct {
	name string
	of   func(s *site) string
}
