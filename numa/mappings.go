package numa

import "tieralloc/internal/sysfs"

// MaxMappings returns the number of mappings that a process may have (vm.max_map_count).
// Neighbouring ranges with different policies are separate mappings. Any thread may call it.
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

// MemFree returns the free bytes of the node's memory, or 0 if they cannot be read. Any thread may
// call it.
func MemFree(node uintptr) uint64 { return sysfs.Memory(node, "MemFree:") }
