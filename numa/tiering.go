package numa

import "tieralloc/internal/sysfs"

// Bits of kernel.numa_balancing. 0: the kernel moves no pages.
const (
	Balancing = 1 // pages are moved to the node of the processor that uses them
	Tiering   = 2 // often used pages of slow memory are promoted
)

// BalancingMode returns kernel.numa_balancing. Any thread may call it.
func BalancingMode() uint64 {
	var p sysfs.Path
	p.Text("/proc/sys/kernel/numa_balancing")
	var f sysfs.File
	if !f.Open(&p) {
		return 0
	}
	mode, _ := f.Number(1 << 31)
	f.Close()
	return mode
}

// CanBalance reports whether this kernel can move memory with a policy by NUMA balancing: whether
// it knows Balanced. Any thread may call it.
func CanBalance() bool { return mbind(0, 0, 1, PreferredMany|Balanced, false) == 0 }
