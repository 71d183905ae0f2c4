package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
)

// device is a CUDA device in a report.
type device struct {
	Ordinal      uint64  `json:"ordinal"`
	UUID         string  `json:"uuid"`
	PCI          string  `json:"pci"`
	BytesDevice  uint64  `json:"bytes_device"`
	Reuse        string  `json:"reuse"`
	Suballoc     string  `json:"suballoc"`
	OnHardcap    string  `json:"on_hardcap"`
	Managed      bool    `json:"managed"`
	AllocCalls   uint64  `json:"alloc_calls"`
	FreeCalls    uint64  `json:"free_calls"`
	HitsLocal    uint64  `json:"hits_local"`
	HitsGlobal   uint64  `json:"hits_global"`
	HitsSplit    uint64  `json:"hits_split"`
	Misses       uint64  `json:"misses"`
	ForeignCalls uint64  `json:"foreign_calls"`
	Refused      uint64  `json:"refused"`
	Waits        uint64  `json:"waits"`
	FreesInvalid uint64  `json:"frees_invalid"`
	FreesUnknown uint64  `json:"frees_unknown"`
	Efficiency   float64 `json:"efficiency"`

	BlocksLive        uint64  `json:"blocks_live"`
	BytesAsked        uint64  `json:"bytes_asked"`
	BytesLive         uint64  `json:"bytes_live"`
	BytesPeak         uint64  `json:"bytes_peak"`
	BytesReserved     uint64  `json:"bytes_reserved"`
	BytesReservedPeak uint64  `json:"bytes_reserved_peak"`
	BytesCachedLocal  uint64  `json:"bytes_cached_local"`
	BytesCachedGlobal uint64  `json:"bytes_cached_global"`
	BytesPending      uint64  `json:"bytes_pending"`
	BytesHeld         uint64  `json:"bytes_held"`
	BytesPrivate      uint64  `json:"bytes_private"`
	BytesLost         uint64  `json:"bytes_lost"`
	BytesForeign      uint64  `json:"bytes_foreign"`
	BytesSpilled      uint64  `json:"bytes_spilled"`
	Fragmentation     float64 `json:"fragmentation_ratio"`
	Segments          uint64  `json:"segments"`
	Spills            uint64  `json:"spills"`
	BytesTotalSpilled uint64  `json:"bytes_total_spilled"`
	Releases          uint64  `json:"releases"`
	BytesReleased     uint64  `json:"bytes_released"`
	DriverRefused     uint64  `json:"driver_refused"`

	DriverCalls map[string]uint64 `json:"driver_calls"`
	Tiers       deviceTiers       `json:"tiers"`
	Leaks       []leak            `json:"leaks"`
}

// deviceTiers have fewer figures than the host's tiers; the rest stays 0.
type deviceTiers struct {
	Fast *tier `json:"fast"`
	Slow *tier `json:"slow"`
}

type leak struct {
	Address uint64 `json:"address"`
	Bytes   uint64 `json:"bytes"`
	Stream  uint64 `json:"stream"`
	Number  uint64 `json:"number"`
}

// kind is the kind of memory that the driver gives.
func (d *device) kind() string {
	if d.Managed {
		return "managed"
	}
	return "plain"
}

// cached is what is free.
func (d *device) cached() uint64 { return d.BytesCachedLocal + d.BytesCachedGlobal }

// deviceFigure is a row of the table of devices.
type deviceFigure struct {
	name string
	of   func(d *device) string
}

var deviceFigures = []deviceFigure{
	{"bus", func(d *device) string { return d.PCI }},
	{"memory", func(d *device) string { return size(d.BytesDevice) }},
	{"policy", func(d *device) string { return d.Reuse + ", " + d.Suballoc + ", " + d.OnHardcap }},
	{"memory of segments", func(d *device) string { return d.kind() }},
	{"soft cap", func(d *device) string { return limit(d.Tiers.Fast.CapacitySoft) }},
	{"hard cap", func(d *device) string { return limit(d.Tiers.Fast.CapacityHard) }},
	{"reserved", func(d *device) string { return size(d.BytesReserved) }},
	{"reserved at most", func(d *device) string { return size(d.BytesReservedPeak) }},
	{"live", func(d *device) string { return size(d.BytesLive) }},
	{"live at most", func(d *device) string { return size(d.BytesPeak) }},
	{"asked for", func(d *device) string { return size(d.BytesAsked) }},
	{"live blocks", func(d *device) string { return count(d.BlocksLive) }},
	{"cached for a stream", func(d *device) string { return size(d.BytesCachedLocal) }},
	{"cached for all", func(d *device) string { return size(d.BytesCachedGlobal) }},
	{"pending", func(d *device) string { return size(d.BytesPending) }},
	{"held", func(d *device) string { return size(d.BytesHeld) }},
	{"private", func(d *device) string { return size(d.BytesPrivate) }},
	{"of the driver's own", func(d *device) string { return size(d.BytesForeign) }},
	{"spilled to the host", func(d *device) string { return size(d.BytesSpilled) }},
	{"fragmentation", func(d *device) string { return ratio(d.Fragmentation) }},
	{"allocations", func(d *device) string { return count(d.AllocCalls) }},
	{"frees", func(d *device) string { return count(d.FreeCalls) }},
	{"hits of the stream", func(d *device) string { return count(d.HitsLocal) }},
	{"hits of all", func(d *device) string { return count(d.HitsGlobal) }},
	{"hits by a part", func(d *device) string { return count(d.HitsSplit) }},
	{"misses", func(d *device) string { return count(d.Misses) }},
	{"left to the driver", func(d *device) string { return count(d.ForeignCalls) }},
	{"efficiency", func(d *device) string { return ratio(d.Efficiency) }},
	{"refused", func(d *device) string { return count(d.Refused) }},
	{"driver had none", func(d *device) string { return count(d.DriverRefused) }},
	{"spills", func(d *device) string { return count(d.Spills) }},
	{"waits", func(d *device) string { return count(d.Waits) }},
	{"segments", func(d *device) string { return count(d.Segments) }},
	{"given back", func(d *device) string { return size(d.BytesReleased) }},
	{"throttled to", func(d *device) string { return throttleWords(d.Tiers.Fast) }},
	{"wait charged", func(d *device) string {
		return duration(d.Tiers.Fast.WaitNs +
			d.Tiers.Slow.WaitNs)
	}},
	{"bad frees", func(d *device) string { return count(d.FreesInvalid) }},
	{"unknown frees", func(d *device) string { return count(d.FreesUnknown) }},
}

// describeDevices writes all that a report tells of its devices.
func describeDevices(w io.Writer, r *report) {
	if len(r.Devices) == 0 {
		return
	}
	header := table.Row{"device"}
	var columns []int
	for i, d := range r.Devices {
		header = append(header, d.Ordinal)
		columns = append(columns, i+2)
	}
	t := newTable(header...)
	alignRight(t, columns...)
	for _, f := range deviceFigures {
		row := table.Row{f.name}
		for _, d := range r.Devices {
			row = append(row, f.of(d))
		}
		t.AppendRow(row)
	}
	fmt.Fprintf(w, "\n%s\n", t.Render())
	for _, d := range r.Devices {
		describeLeaks(w, d)
	}
}

func describeLeaks(w io.Writer, d *device) {
	if len(d.Leaks) == 0 {
		return
	}
	t := newTable("address", "asked for", "stream", "allocation")
	alignRight(t, 2, 4)
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
		fmt.Fprintf(w, "device %d: live at most %s, reserved at most %s; %s, %s of them without the driver; %s spilled, %s refused\n",
			d.Ordinal, size(d.BytesPeak), size(d.BytesReservedPeak),
			plural(d.AllocCalls, "allocation"), ratio(d.Efficiency),
			size(d.BytesTotalSpilled), count(d.Refused))
	}
}
