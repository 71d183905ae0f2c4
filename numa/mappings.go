package numa

import "tieralloc/internal/sysfs"

// MaxMappings is how many mappings the kernel lets a process have (vm.max_map_count). Each
// range of another policy is one. Any thread may call it.
func MaxMappings() uint64 {
	const usual = 65530
	var p sysfs.Path
	p.Text("/proc/sys/vm/max_map_count")
	var f sysfs.File
	if !f.Open(&p) {
		return usual
	}
	n, ok := f.Number(1 << 31)
	f.Close()
	if !ok {
		return usual
	}
	return n
}

// MemFree is how many bytes of the node's memory are free, 0 when that cannot be
// read. Any thread may call it.
func MemFree(node uintptr) uint64 { return sysfs.Memory(node, "MemFree:") }
