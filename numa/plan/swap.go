package plan

import (
	"syscall"

	"tieralloc/internal/cgroup"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/internal/sysfs"
	"tieralloc/numa"
)

// SwapUnused says why TA_SLOW_BACKEND=swap pages nothing out, "" if it does. SetParts has been
// called.
func SwapUnused(s *config.Settings, m *numa.Map) (why string) {
	soft := uint64(0)
	for i := range s.Tiers {
		soft |= s.Tiers[i].Soft
	}
	const pageout = 21 // MADV_PAGEOUT
	_, errno := raw.Sys(syscall.SYS_MADVISE, 0, 0, pageout, 0, 0, 0)
	switch {
	case !m.Simulated:
		return "the tiers are different memory, and memory moves between them"
	case s.OnSoftcap != config.SoftcapFollow:
		return "it needs TA_ON_SOFTCAP=follow"
	case soft == 0:
		return "no tier has a soft cap (TA_NORMAL_SOFT)"
	case sysfs.SwapTotal() == 0:
		return "there is no swap (SwapTotal in /proc/meminfo is 0)"
	case !cgroup.SwapAllowed():
		return "the control group allows none (memory.swap.max is 0, or " +
			"memory.memsw.limit_in_bytes no more than the limit)"
	case errno != 0:
		return "madvise refuses MADV_PAGEOUT, which Linux has since 5.4"
	}
	return ""
}
