package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
)

// manager is a memory manager of a report.
type manager struct {
	Name       string      `json:"name"`
	Device     uint64      `json:"device"`
	Mode       string      `json:"mode"`
	BytesTotal uint64      `json:"bytes_total"`
	Count      uint64      `json:"instance_count"`
	Instances  []*instance `json:"instances"`
}

type instance struct {
	ID         uint64  `json:"id"`
	Name       string  `json:"name"`
	Group      string  `json:"group"`
	Pool       string  `json:"pool"`
	Proportion float64 `json:"proportion"`
	BytesCap   uint64  `json:"bytes_cap"`
	BytesLive  uint64  `json:"bytes_live"`
	BytesPeak  uint64  `json:"bytes_peak"`
	AllocCalls uint64  `json:"alloc_calls"`
	FreeCalls  uint64  `json:"free_calls"`
	Refused    uint64  `json:"refused"`
	Evictions  uint64  `json:"evictions"`
}

// describeManagers writes a table for each memory manager that has instances.
func describeManagers(w io.Writer, r *report) {
	for _, m := range r.Managers {
		t := newTable("instance", "number", "group", "pool", "part", "cap", "live", "peak",
			"allocs", "frees", "refused", "evicted")
		alignRight(t, 2, 5, 6, 7, 8, 9, 10, 11, 12)
		for _, i := range m.Instances {
			t.AppendRow(table.Row{i.Name, fmt.Sprint(i.ID), i.Group, i.Pool, ratio(i.Proportion),
				size(i.BytesCap), size(i.BytesLive),
				size(i.BytesPeak), count(i.AllocCalls), count(i.FreeCalls), count(i.Refused),
				count(i.Evictions)})
		}
		fmt.Fprintf(w, "\nmemory manager %q of device %d, %s: %s for %s\n%s\n", m.Name, m.Device,
			m.Mode,
			size(m.BytesTotal), plural(m.Count, "instance"), t.Render())
		if hidden := m.Count - min(m.Count, uint64(len(m.Instances))); hidden != 0 {
			fmt.Fprintf(w, "and %s that the report has no room for\n", plural(hidden, "instance"))
		}
	}
}
