// Package cgroup reads the memory limit of this process's control groups and how much of it is
// left. It reads groups of version 2, or of version 1 if that controls memory. It is freestanding
// Go (docs/runtime.md): no allocation, no panic, no runtime.
package cgroup

import (
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/internal/sysfs"
)

// Memory is the memory of a group.
type Memory struct {
	Limit uint64 // bytes; 0: there is no limit
	Used  uint64 // bytes, without those that the kernel can reclaim
	High  bool   // the limit is memory.high, beyond which the kernel reclaims and slows threads
}

// Left returns the bytes that are left. Precondition: there is a limit.
func (m *Memory) Left() uint64 { return m.Limit - min(m.Limit, m.Used) }

// Self replaces /proc/self/cgroup if it is set. Only tests set it.
var Self string

const noLimit = 1 << 59 // version 1 writes a number above this for no limit

// version is the version of the groups that control memory: 1 or 2; 0: none.
type version uint32

// The files of a group. They are not a table, because the loader would have to relocate its
// addresses.

func (v version) folder() string {
	if v == 1 {
		return "/fs/cgroup/memory"
	}
	return "/fs/cgroup"
}

func (v version) max() string {
	if v == 1 {
		return "/memory.limit_in_bytes"
	}
	return "/memory.max"
}

func (v version) usage() string {
	if v == 1 {
		return "/memory.usage_in_bytes"
	}
	return "/memory.current"
}

var group, name config.Text // the group's path; the name of a file of it or of a group above it

// Read fills m with the memory of the group that has the least left, among this process's own and
// those above it. In a container those above are hidden, and the files of the own group are in the
// place of the root's. The limit is the lower of memory.high and memory.max. Version 1 has only the
// hard limit: its soft limit moves no pages before the system is short. One thread at a time may
// call it.
func Read(m *Memory) { find().read(m) }

func (v version) read(m *Memory) {
	*m = Memory{}
	if v == 0 {
		return
	}
	end := group.Len()
	for ; end > 1; end-- { // the root's path is a slash
		if end == group.Len() || group.At(end) == '/' {
			v.look(end, m)
		}
	}
	v.look(0, m)
}

// find sets group to this process's group, of the version that controls memory.
func find() (v version) {
	group.Reset()
	name.Reset()
	self := Self
	if self == "" {
		self = "/proc/self/cgroup"
	}
	name.Mem(raw.Bytes(self), uintptr(len(self)))
	var f sysfs.File
	if !f.OpenName(name.Addr()) {
		return 0
	}
	const lines = 64 // more than there are controllers
	for i := 0; i < lines && v != 1; i++ {
		var w sysfs.Word
		if w.Read(&f, ':', ':') != ':' {
			break
		}
		if w.Is("0") { // 0::/path
			w.Read(&f, ':', ':')
			v = 2
			readGroup(&f)
			continue
		}
		memory, last := false, byte(',')
		for last == ',' { // 4:memory:/path, 5:cpu,cpuacct:/path
			last = w.Read(&f, ',', ':')
			memory = memory || w.Is("memory")
		}
		if memory {
			v = 1
			readGroup(&f)
		} else {
			f.Line()
		}
	}
	f.Close()
	return v
}

// readGroup reads the rest of a line into group.
func readGroup(f *sysfs.File) {
	group.Reset()
	for c := f.Next(); c != '\n' && c != 0; c = f.Next() {
		group.Byte(c)
	}
}

// look sets m to the memory of the group whose path is the first n bytes of group, if that has a
// limit and less left than m.
func (v version) look(n uintptr, m *Memory) {
	most, high := v.number(n, v.max()), false
	if v == 2 {
		soft := v.number(n, "/memory.high")
		high = soft < most
		most = min(most, soft)
	}
	if most >= noLimit {
		return
	}
	used := v.number(n, v.usage())
	if used >= noLimit {
		return
	}
	here := Memory{max(most, 1), used - min(used, v.reclaimable(n)), high}
	if m.Limit == 0 || here.Left() < m.Left() {
		*m = here
	}
}

// open opens a file of the group whose path is the first n bytes of group.
func (v version) open(f *sysfs.File, n uintptr, file string) bool {
	root := sysfs.Mounted
	if root == "" {
		root = "/sys"
	}
	folder := v.folder()
	name.Reset()
	ok := name.Mem(raw.Bytes(root), uintptr(len(root))) &&
		name.Mem(raw.Bytes(folder), uintptr(len(folder))) &&
		name.Mem(group.Addr(), n) && name.Mem(raw.Bytes(file), uintptr(len(file)))
	return ok && f.OpenName(name.Addr())
}

// number returns the number in a file, or noLimit if there is none.
func (v version) number(n uintptr, file string) uint64 {
	var f sysfs.File
	if !v.open(&f, n, file) {
		return noLimit
	}
	most, ok := f.Number(noLimit)
	f.Close()
	if !ok {
		return noLimit
	}
	return most
}

// reclaimable returns the bytes of the group that the kernel takes before it refuses or kills:
// pages of files, and anonymous pages that are mapped no more. These are parts of huge pages, which
// stay with the group until it reaches its limit (the kernel's deferred split). Version 1 has a
// line for the group itself and a line that includes the groups below it.
func (v version) reclaimable(n uintptr) uint64 {
	const lines = 256 // more than any kernel writes
	var f sysfs.File
	if !v.open(&f, n, "/memory.stat") {
		return 0
	}
	var activeFile, inactiveFile, active, inactive, mapped, shared uint64
	for i := 0; i < lines; i++ {
		var w sysfs.Word
		if w.Read(&f, ' ', ' ') != ' ' {
			break
		}
		bytes, _ := f.Number(noLimit)
		f.Line()
		switch {
		case w.Is("active_file"), w.Is("total_active_file"):
			activeFile = max(activeFile, bytes)
		case w.Is("inactive_file"), w.Is("total_inactive_file"):
			inactiveFile = max(inactiveFile, bytes)
		case w.Is("active_anon"), w.Is("total_active_anon"): // with shared memory
			active = max(active, bytes)
		case w.Is("inactive_anon"), w.Is("total_inactive_anon"):
			inactive = max(inactive, bytes)
		case w.Is("anon"), w.Is("total_rss"):
			mapped = max(mapped, bytes)
		case w.Is("shmem"), w.Is("total_shmem"):
			shared = max(shared, bytes)
		}
	}
	f.Close()
	anonymous := active + inactive
	return activeFile + inactiveFile + anonymous - min(anonymous, mapped+shared)
}
