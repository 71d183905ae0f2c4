package numa

// MaxMappings is how many mappings the kernel lets a process have (vm.max_map_count). Each
// range of another policy is one. Any thread may call it.
func MaxMappings() uint64 {
	const usual = 65530
	var p path
	p.text("/proc/sys/vm/max_map_count")
	var f file
	if !f.open(&p) {
		return usual
	}
	n, ok := f.number(1 << 31)
	f.close()
	if !ok {
		return usual
	}
	return n
}
