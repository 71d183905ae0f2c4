package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// deviceTypes is the prefix of the sample types of device memory. Behind it they are the host's.
const deviceTypes = "device_"

// memoryOf names the memory of a sample: "" for the host.
func memoryOf(s *profile.Sample) string {
	device, kind := s.Label["device"], s.Label["kind"]
	if len(device) != 1 || len(kind) != 1 {
		return ""
	}
	name := "device " + printable(device[0])
	switch kind[0] {
	case "device":
		return name
	case "managed", "spilled":
		return name + " (" + kind[0] + ")"
	}
	return ""
}

// memories lists the memories of devices in the profiles. Either may be nil.
func memories(files ...*profileFile) (list []string) {
	for _, f := range files {
		if f == nil {
			continue
		}
		for _, s := range f.profile.Sample {
			if m := memoryOf(s); m != "" && !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(strings.Fields(a)[1]), len(strings.Fields(b)[1])),
			cmp.Compare(a, b))
	})
	return list
}

// hostTypes returns the sample types that are not of device memory.
func (f *profileFile) hostTypes() (types []*profile.ValueType) {
	for _, t := range f.profile.SampleType {
		if !strings.HasPrefix(t.Type, deviceTypes) {
			types = append(types, t)
		}
	}
	return types
}

// likeDevices adds the sample types of device memory that only the other profile has, each value 0.
func (f *profileFile) likeDevices(other *profileFile) {
	n := len(f.profile.SampleType)
	if len(f.hostTypes()) != n || len(other.hostTypes()) != n ||
		len(other.profile.SampleType) == n ||
		!strings.HasPrefix(other.profile.SampleType[n].Type, deviceTypes) {
		return
	}
	for _, t := range other.profile.SampleType[n:] {
		f.profile.SampleType = append(f.profile.SampleType,
			&profile.ValueType{Type: t.Type, Unit: t.Unit})
	}
	for _, s := range f.profile.Sample {
		s.Value = append(s.Value, make([]int64, len(f.profile.SampleType)-n)...)
	}
}

// deviceTables returns a table for each memory of a device, of the sample type kind or its like.
func deviceTables(f, old *profileFile, kind int) (tables []*profileTable) {
	name := f.profile.SampleType[kind].Type
	if !strings.HasPrefix(name, deviceTypes) {
		if kind = f.typeIndex(deviceTypes + name); kind < 0 {
			return nil
		}
	}
	for _, m := range memories(f, old) {
		tables = append(tables, newProfileTable(f, old, kind, m))
	}
	return tables
}
