package main

import (
	"math"
	"math/bits"
	"strings"

	"tieralloc/internal/config"
)

// idleCUDA notes those of the variables of CUDA. reports says that there are reports.
func idleCUDA(c *config.CUDA, reports bool, note func(idle bool, name, why string)) {
	if !c.Enable {
		for _, name := range settingNames() {
			note(cudaOnly(name), name, "TA_CUDA=0 lets all CUDA calls pass")
		}
		return
	}
	note(c.Proportion == config.ProportionOne, "TA_CUDA_PROPORTION",
		"all of the device's memory is no cap")
	note(c.Hard != 0 && c.CacheLimit >= c.Hard, "TA_CUDA_CACHE_LIMIT",
		"TA_CUDA_HARD allows no more, cached or not")
	note(c.Managed && c.Expandable, "TA_CUDA_EXPANDABLE",
		"with TA_CUDA_MANAGED=1 segments do not grow")
	note(c.CacheLimit == 0, "TA_CUDA_WARMUP", "with TA_CUDA_CACHE_LIMIT=0 nothing is kept ready")
	note(c.Leaks && !reports, "TA_CUDA_LEAKS",
		"there is no report without TA_STATS_FILE, which tierallocctl run sets")
}

// cudaOnly reports whether a variable is for CUDA and is not TA_CUDA itself.
func cudaOnly(name string) bool { return strings.HasPrefix(name, prefix+"CUDA_") }

// cudaRemarks lists side effects of CUDA settings that are easily overlooked.
func cudaRemarks(s *config.Settings) []string {
	c := &s.CUDA
	if s.Disable || !c.Enable {
		return nil
	}
	var lines []string
	add := func(when bool, text string) {
		if when {
			lines = append(lines, text)
		}
	}
	caps := c.Hard != 0 || c.Proportion != 0 && c.Proportion != config.ProportionOne
	add(c.Spill && !caps &&
		!c.Managed, "TA_CUDA_ON_HARDCAP=spill without TA_CUDA_HARD or TA_CUDA_PROPORTION: host "+
		"memory is taken only"+
		" when the driver has none left, and other programs on the device may have used it up")
	add(c.Hard != 0 && c.Proportion != 0 && c.Proportion != config.ProportionOne,
		"TA_CUDA_HARD and TA_CUDA_PROPORTION: on each device the smaller of the two holds")
	add(c.Soft != 0 && c.Proportion != 0,
		"TA_CUDA_SOFT above TA_CUDA_PROPORTION of a device has no effect on that device")
	add(c.ReuseEvent, "TA_CUDA_REUSE=event: cudaFree does not wait for the device as the "+
		"driver's does; a program that"+
		" reads results right after it must synchronise")
	add(c.SuballocAll, "TA_CUDA_SUBALLOC=all: IPC handles and GPUDirect registrations name whole "+
		"segments")
	add(c.Managed, "TA_CUDA_MANAGED=1: device memory has no IPC handles, and pages of it lie on "+
		"the device only once they were touched there")
	if ready := warmBytes(c); ready > 0 {
		add(c.CacheLimit != 0 && c.CacheLimit != config.NoLimit &&
			ready > c.CacheLimit, "TA_CUDA_WARMUP asks for "+size(ready)+
			", and TA_CUDA_CACHE_LIMIT keeps "+size(c.CacheLimit))
		add(c.Hard != 0 &&
			ready > c.Hard,
			"TA_CUDA_WARMUP asks for "+size(ready)+", and TA_CUDA_HARD allows "+size(c.Hard))
	}
	return lines
}

// warmBytes returns the bytes of a warm-up, or the largest number if they are more.
func warmBytes(c *config.CUDA) (sum uint64) {
	for _, w := range c.Warmup[:c.Warmups] {
		over, more := bits.Mul64(w.Bytes, w.Count)
		var carry uint64
		if sum, carry = bits.Add64(sum, more, 0); over+carry != 0 {
			return math.MaxUint64
		}
	}
	return sum
}
