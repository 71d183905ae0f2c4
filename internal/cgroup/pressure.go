package cgroup

import (
	"tieralloc/internal/raw"
	"tieralloc/internal/sysfs"
)

// System replaces /proc/pressure/memory if it is set. Only tests set it.
var System string

const pressureMost = 100_00 // hundredths of a percent

// Pressure returns for what part of the last ten seconds some thread waited for memory, in
// hundredths of a percent (the kernel's "some avg10"). It asks this process's group of version 2,
// or the whole system where the group does not tell. It reports false where neither does. One
// thread at a time may call it.
func Pressure() (stalled uint64, ok bool) { return find().pressure() }

// ReadBoth does what Read and Pressure do, and looks up this process's group once.
func ReadBoth(m *Memory) (stalled uint64, ok bool) {
	v := find()
	v.read(m)
	return v.pressure()
}

func (v version) pressure() (stalled uint64, ok bool) {
	const file = "/memory.pressure"
	var f sysfs.File
	if v == 2 && (v.open(&f, group.Len(), file) || v.open(&f, 0, file)) {
		if stalled, ok = some(&f); ok {
			return stalled, true
		}
	}
	system := System
	if system == "" {
		system = "/proc/pressure/memory"
	}
	name.Reset()
	if !name.Mem(raw.Bytes(system), uintptr(len(system))) || !f.OpenName(name.Addr()) {
		return 0, false
	}
	return some(&f)
}

// some reads "some avg10=1.25 ..." and closes the file.
func some(f *sysfs.File) (stalled uint64, ok bool) {
	var w, key sysfs.Word
	w.Read(f, ' ', ' ')
	key.Read(f, '=', '=')
	var point sysfs.Word
	whole, ok := f.Number(pressureMost)
	ok = ok && w.Is("some") && key.Is("avg10")
	if ok && point.Read(f, '.', ' ') == '.' { // two digits follow; the kernel writes no others
		tens, ones := f.Next()-'0', f.Next()-'0'
		if tens > 9 || ones > 9 {
			ok = false
		}
		whole = whole*100 + uint64(tens)*10 + uint64(ones)
	} else {
		ok = false
	}
	f.Close()
	if !ok {
		return 0, false
	}
	return min(whole, pressureMost), true
}

const (
	// of ten seconds, in hundredths of a percent
	stalledBegin = 10_00
	stalledEnd   = 5_00
	// what is left, in thirty-seconds of the limit
	leftBegin = 1
	leftEnd   = 2
)

// Short reports whether m and a figure of Pressure are a sign that memory is short. Of what is used
// the caller could return unused bytes, which count as left. Where memory was short before, weaker
// signs are enough.
func (m *Memory) Short(unused, stalled uint64, before bool) bool {
	part, most := uint64(leftBegin), uint64(stalledBegin)
	if before {
		part, most = leftEnd, stalledEnd
	}
	return m.Limit != 0 && m.Left()+unused < m.Limit/32*part || stalled >= most
}
