package numa

import "tieralloc/internal/sysfs"

// Tiering reports whether the kernel's memory tiering is on: pages of slow memory that are used
// often are promoted (kernel.numa_balancing has 2 in it). Any thread may call it.
func Tiering() bool {
	const memoryTiering = 2
	var p sysfs.Path
	p.Text("/proc/sys/kernel/numa_balancing")
	var f sysfs.File
	if !f.Open(&p) {
		return false
	}
	how, _ := f.Number(1 << 31)
	f.Close()
	return how&memoryTiering != 0
}
