package main

import (
	"fmt"
	"io"
	"strings"
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
	t := tableOf(siteFigures, r.Sites[:min(len(r.Sites), siteLines)])
	fmt.Fprintf(w, "\nstacks that allocated most, estimated; sizes and lifetimes are medians, "+
		"calls are the innermost first\n%s\n", t.Render())
	if more := len(r.Sites) - siteLines; more > 0 {
		fmt.Fprintf(w, "and %s, which --json shows\n", plural(more, "stack"))
	}
}
