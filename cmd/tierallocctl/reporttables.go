package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// kind returns the kind of the device heap's memory.
func (d *device) kind() string {
	if d.Managed {
		return "managed"
	}
	return "plain"
}

// cached returns the bytes of free blocks.
func (d *device) cached() uint64 { return d.BytesCachedLocal + d.BytesCachedGlobal }

// describeDevices writes all figures of a report's devices.
func describeDevices(w io.Writer, r *report) {
	if len(r.Devices) == 0 {
		return
	}
	header := table.Row{"device"}
	for _, d := range r.Devices {
		header = append(header, fmt.Sprintf(">%d", d.Ordinal))
	}
	t := newTable(header...)
	appendRows(t, deviceFigures, r.Devices)
	fmt.Fprintf(w, "\n%s\n", t.Render())
	for _, d := range r.Devices {
		describeLeaks(w, d)
	}
}

func describeLeaks(w io.Writer, d *device) {
	if len(d.Leaks) == 0 {
		return
	}
	t := newTable("address", ">asked for", "stream", ">allocation")
	for _, l := range d.Leaks {
		t.AppendRow(table.Row{fmt.Sprintf("%#x", l.Address), size(l.Bytes),
			fmt.Sprintf("%#x", l.Stream), count(l.Number)})
	}
	fmt.Fprintf(w, "\nlive on device %d at the end: %s, among them\n%s\n", d.Ordinal,
		plural(d.BlocksLive, "block"), t.Render())
}

// summarizeDevices writes a line for each device.
func summarizeDevices(w io.Writer, r *report) {
	for _, d := range r.Devices {
		fmt.Fprintf(w, "device %d: live at most %s, reserved at most %s; %s, %s of them without "+
			"the driver; %s spilled, %s refused\n",
			d.Ordinal, size(d.BytesPeak), size(d.BytesReservedPeak),
			plural(d.AllocCalls, "allocation"), ratio(d.Efficiency),
			size(d.BytesTotalSpilled), count(d.Refused))
	}
}

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
