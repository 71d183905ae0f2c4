package main

import (
	"fmt"
	"io"
)

// describeManagers writes a table for each memory manager that has instances.
func describeManagers(w io.Writer, r *report) {
	for _, m := range r.Managers {
		fmt.Fprintf(w, "\nmemory manager %q of device %d, %s: %s for %s\n%s\n", m.Name, m.Device,
			m.Mode, size(m.BytesTotal), plural(m.InstanceCount, "instance"),
			tableOf(instanceFigures, m.Instances).Render())
		if hidden := m.InstanceCount - min(m.InstanceCount, uint64(len(m.Instances))); hidden != 0 {
			fmt.Fprintf(w, "and %s more, which the report does not list\n",
				plural(hidden, "instance"))
		}
	}
}
