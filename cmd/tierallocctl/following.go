package main

import (
	"fmt"
	"strings"
)

// followingInReport says what a process did that follows, or that pages out: two lines, or none.
func followingInReport(r *report) []string {
	f := r.Following
	if f == nil {
		return nil
	}
	var known []string
	for i, t := range r.tiers() {
		if n := t.BytesHot + t.BytesCold; n != 0 {
			known = append(known, fmt.Sprintf("%s %s of %s", tierNames[i], size(t.BytesHot),
				size(n)))
		}
	}
	hot := "nothing known to be hot"
	if known != nil {
		hot = "hot " + strings.Join(known, ", ")
	}
	moved := func(m moves) string { return size(m.Bytes) + " (" + count(m.Regions) + ")" }
	what := fmt.Sprintf("moved up: %s into room, %s as hotter; down: %s as colder, %s over the "+
		"soft cap; refused %s, put off %s", moved(f.UpRoom), moved(f.UpHotter),
		moved(f.DownColder), moved(f.DownSoftcap), moved(f.Refused), moved(f.PutOff))
	if f.BytesResident != 0 {
		what = fmt.Sprintf("resident %s; paged out: %s as coldest, %s before its use was known, "+
			"%s again; came back %s, refused %s", size(f.BytesResident), moved(f.OutCold),
			moved(f.OutUnknown), moved(f.OutAgain), size(f.BytesBack), moved(f.OutRefused))
	}
	return []string{
		fmt.Sprintf("follows by %s: %s of %s in %s; %s", strings.ReplaceAll(f.Source, "_", " "),
			plural(f.Samples, "sample"), plural(f.Regions, "region"), duration(f.ThreadNs), hot),
		what,
	}
}
