package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
)

// instanceFigure is a column of the table of a memory manager's instances.
type instanceFigure struct {
	name string
	of   func(i *instance) string
}

// describeManagers writes a table for each memory manager that has instances.
func describeManagers(w io.Writer, r *report) {
	for _, m := range r.Managers {
		var header table.Row
		for _, f := range instanceFigures {
			header = append(header, f.name)
		}
		t := newTable(header...)
		alignRight(t, 2, 5, 6, 7, 8, 9, 10, 11, 12)
		for _, i := range m.Instances {
			var row table.Row
			for _, f := range instanceFigures {
				row = append(row, f.of(i))
			}
			t.AppendRow(row)
		}
		fmt.Fprintf(w, "\nmemory manager %q of device %d, %s: %s for %s\n%s\n", m.Name, m.Device,
			m.Mode,
			size(m.BytesTotal), plural(m.InstanceCount, "instance"), t.Render())
		if hidden := m.InstanceCount - min(m.InstanceCount, uint64(len(m.Instances))); hidden != 0 {
			fmt.Fprintf(w, "and %s more, which the report does not list\n",
				plural(hidden, "instance"))
		}
	}
}
