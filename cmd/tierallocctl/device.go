package main

import (
	"fmt"
	"io"

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
