package document

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"tieralloc/stats"
)

// devicesOf are the decoded devices of a report.
func devicesOf(t *testing.T, r *stats.Report) []map[string]any {
	t.Helper()
	list, _ := decode(t, text(t, r))["devices"].([]any)
	var devices []map[string]any
	for _, d := range list {
		devices = append(devices, d.(map[string]any))
	}
	return devices
}

// TestDeviceRoundTrip shows that every figure of a device arrives under its key.
func TestDeviceRoundTrip(t *testing.T) {
	r := fullReport(t)
	devices := devicesOf(t, r)
	if len(devices) != stats.DeviceMax {
		t.Fatalf("%d devices", len(devices))
	}
	for i, got := range devices {
		d := &r.Devices[i]
		compare(t, "device", reflect.ValueOf(d).Elem(), got)
		tiers := got["tiers"].(map[string]any)
		if len(tiers) != len(d.Tiers) {
			t.Errorf("tiers %v", tiers)
		}
		for k, name := range []string{stats.DeviceFast: "fast", stats.DeviceSlow: "slow"} {
			compare(t, name, reflect.ValueOf(d.Tiers[k]), tiers[name])
		}
		leaks := got["leaks"].([]any)
		if len(leaks) != int(d.LeakCount) {
			t.Errorf("%d leaks, not %d", len(leaks), d.LeakCount)
		}
		for k := range leaks {
			compare(t, "leak", reflect.ValueOf(d.Leaks[k]), leaks[k])
		}
		if managed := i>>1&1 != 0; got["managed"] != managed {
			t.Errorf("managed is %v, not %v", got["managed"], managed)
		}
		words := strings.Join([]string{got["reuse"].(string), got["suballoc"].(string),
			got["on_hardcap"].(string)}, " ")
		want := []string{"sync small fail", "event small fail", "sync all fail", "event all fail",
			"sync small spill", "event small spill", "sync all spill", "event all spill"}[i]
		if words != want {
			t.Errorf("%s, not %s", words, want)
		}
	}
}

// TestNoDevices: a process without CUDA has no such key, and a count that is too large
// names no devices that are not there.
func TestNoDevices(t *testing.T) {
	r := newReport(t)
	if _, ok := decode(t, text(t, r))["devices"]; ok {
		t.Error("there are devices")
	}
	r.DeviceCount = math.MaxUint64
	r.Devices[0].LeakCount = math.MaxUint64
	devices := devicesOf(t, r)
	if len(devices) != stats.DeviceMax || len(devices[0]["leaks"].([]any)) != stats.LeakMax {
		t.Errorf("%d devices", len(devices))
	}
}

func TestDeviceNames(t *testing.T) {
	r := newReport(t)
	r.DeviceCount = 1
	d := &r.Devices[0]
	for _, c := range []struct {
		uuid      string // its bytes
		pci       uint64
		name, bus string
	}{
		{strings.Repeat("\x00", 16), 0, "", ""},
		{"\x4a\xe8\x98\x7a\x05\xb8\xe9\x5a\x80\x01\xff\x10\x20\x30\x40\x5f", 1 + (0x1b<<8 | 3<<3),
			"4ae8987a-05b8-e95a-8001-ff102030405f", "00000000:1b:03.0"},
		{strings.Repeat("\x00", 15) + "\x01", 1, "00000000-0000-0000-0000-000000000001",
			"00000000:00:00.0"},
		{strings.Repeat("\xff", 16), 1 + (0xfedc<<16 | 0xff<<8 | 31<<3),
			"ffffffff-ffff-ffff-ffff-ffffffffffff", "0000fedc:ff:1f.0"},
	} {
		copy((*[16]byte)(unsafe.Pointer(&d.Uuid))[:], c.uuid)
		d.Pci = c.pci
		if got := devicesOf(t, r)[0]; got["uuid"] != c.name || got["pci"] != c.bus {
			t.Errorf("%q at %q, not %q at %q", got["uuid"], got["pci"], c.name, c.bus)
		}
	}
}

func TestDeviceRatios(t *testing.T) {
	r := newReport(t)
	r.DeviceCount = 1
	for _, c := range []struct {
		local, global, split, calls  uint64
		cachedLocal, cached, largest uint64
		efficiency, fragmentation    string
	}{
		{0, 0, 0, 0, 0, 0, 0, "0.0000", "0.0000"},
		{1, 2, 3, 8, 100, 300, 100, "0.7500", "0.7500"},
		{5, 0, 0, 5, 1 << 30, 0, 1 << 30, "1.0000", "0.0000"},
		{5, 5, 0, 9, 1, 0, 2, "1.0000", "0.0000"}, // counters read while others run may disagree
		{0, 0, 0, 9, 1 << 40, 0, 0, "0.0000", "1.0000"},
	} {
		d := &r.Devices[0]
		d.HitsLocal, d.HitsGlobal, d.HitsSplit, d.AllocCalls = c.local, c.global, c.split, c.calls
		d.BytesCachedLocal, d.BytesCachedGlobal, d.LargestFree = c.cachedLocal, c.cached, c.largest
		got := devicesOf(t, r)[0]
		if got["efficiency"] != json.Number(c.efficiency) ||
			got["fragmentation_ratio"] != json.Number(c.fragmentation) {
			t.Errorf("%+v: %v, %v", c, got["efficiency"], got["fragmentation_ratio"])
		}
	}
}
