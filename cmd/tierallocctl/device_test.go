package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestDescribeDevices: all figures of the fixture's device are shown, each where it
// belongs, and none in a report without one.
func TestDescribeDevices(t *testing.T) {
	var out bytes.Buffer
	r := goodReport(t)
	describe(&out, r)
	text := squeeze(out.String())
	d := r.Devices[0]
	for _, words := range []string{
		"device 0\n", "bus 00000000:1b:00.0\n", "memory 80 GiB\n", "policy event, all, spill\n",
		"memory of segments managed\n", "hard cap 8.0 GiB\n", "soft cap -\n",
		"reserved " + size(d.BytesReserved) + "\n", "live " + size(d.BytesLive) + "\n",
		"asked for " + size(d.BytesAsked) + "\n",
		"cached for a stream " + size(d.BytesCachedLocal) + "\n",
		"cached for all " + size(d.BytesCachedGlobal) + "\n",
		"fragmentation 87.5%\n", "efficiency 87.5%\n",
		"hits by a part " + count(d.HitsSplit) + "\n",
		"live on device 0 at the end: 2 blocks, among them\n", "0x7f0000200000 3.0 MiB 0x0 17\n",
		"0x7f0000600000 1000 B 0x55d0 18",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is missing in\n%s", words, text)
		}
	}
	out.Reset()
	summarize(&out, r)
	if words := "device 0: live at most " + size(d.BytesPeak) +
		", reserved at most"; !strings.Contains(out.String(), words) {
		t.Errorf("%q is missing in\n%s", words, out.String())
	}
	out.Reset()
	r.Devices, r.Managers = nil, nil
	describe(&out, r)
	summarize(&out, r)
	if strings.Contains(out.String(), "device") {
		t.Errorf("%s", out.String())
	}
}

// TestDeviceFigures: each row shows a figure of its own.
func TestDeviceFigures(t *testing.T) {
	d := goodReport(t).Devices[0]
	seen := map[string]string{none: "", "8.0 GiB": ""}
	d.FragmentationRatio = 0.5
	for _, f := range deviceFigures {
		words := f.of(d)
		if other := seen[words]; other != "" {
			t.Errorf("%s and %s are both %s", f.name, other, words)
		}
		if words != none {
			seen[words] = f.name
		}
	}
}
