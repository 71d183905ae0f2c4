package main

import (
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// withDevices is parrot with a table on device 0 and steady growth on device 1.
func withDevices() *profile.Profile {
	const mib = 1 << 20
	p := parrot()
	for _, t := range libraryTypes {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: deviceTypes + t.Type,
			Unit: t.Unit})
	}
	for _, s := range p.Sample {
		s.Value = append(s.Value, make([]int64, len(libraryTypes))...)
	}
	add := func(device, stack string, values ...int64) {
		values = append(values, values[2])
		addStack(p, stack, append(make([]int64, len(libraryTypes)), values...)...)
		p.Sample[len(p.Sample)-1].Label = map[string][]string{
			"device": {device}, "kind": {"device"}}
	}
	add("1", "main serve remember", 10, 10*mib, 10, 10*mib, 10*mib, 5*mib, 0)
	add("0", "main init table", 1, 2*mib, 1, 2*mib, 2*mib, 0, 0)
	return p
}

// TestProfileDevices: the host's table is as without devices, and each device has one of its own.
func TestProfileDevices(t *testing.T) {
	const devices = `
device 0: device_inuse_space 2.0 MiB
   flat   flat%      cum    cum%  function
2.0 MiB  100.0%  2.0 MiB  100.0%  table
    0 B    0.0%  2.0 MiB  100.0%  init
    0 B    0.0%  2.0 MiB  100.0%  main

device 1: device_inuse_space 10 MiB
  flat   flat%     cum    cum%  function
10 MiB  100.0%  10 MiB  100.0%  remember
   0 B    0.0%  10 MiB  100.0%  main
   0 B    0.0%  10 MiB  100.0%  serve
`
	path := saveProfile(t, "p.pb", withDevices())
	if _, out, stderr := ctlProfile(path); out != parrotTop+devices {
		t.Errorf("%s%s", out, stderr)
	}
	_, out, stderr := ctlProfile(path, "--type", "device_inuse_space")
	if out != devices[1:] {
		t.Errorf("%s%s", out, stderr)
	}
	_, out, _ = ctlProfile(path, "--leaks")
	if !strings.HasPrefix(out, parrotLeaks+"\ndevice 0: 2.0 MiB in use\nno stack") ||
		!strings.Contains(out, "\ndevice 1: 10 MiB in use\n1 stack allocates steadily") {
		t.Error(out)
	}
	_, out, _ = ctlProfile(path, "--flame", "-", "--type", "device_inuse_space")
	if !strings.Contains(out, "device 0") || !strings.Contains(out, "device 1") {
		t.Error("the picture has no devices")
	}
	_, out, _ = ctlProfile(path, "--flame", "-")
	if strings.Contains(out, "device 1") {
		t.Error("the picture of the host has devices")
	}
}

// TestProfileDevicesDiff: one of the profiles is of a time without device memory.
func TestProfileDevicesDiff(t *testing.T) {
	with, without := saveProfile(t, "p.pb", withDevices()), saveProfile(t, "p.pb", parrot())
	_, out, stderr := ctlProfile(with, "--diff", without)
	if !strings.Contains(out, "\ndevice 1: device_inuse_space +10 MiB, from 0 B to 10 MiB\n") {
		t.Errorf("%s%s", out, stderr)
	}
	_, out, stderr = ctlProfile(without, "--diff", with)
	if !strings.Contains(out, "\ndevice 1: device_inuse_space -10 MiB, from 10 MiB to 0 B\n") {
		t.Errorf("%s%s", out, stderr)
	}
}
