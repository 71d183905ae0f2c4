package main

import (
	"fmt"

	"tieralloc/internal/cgroup"
	"tieralloc/internal/config"
)

// memoryLimit says how much memory the control groups of this process leave to it and its children,
// and whether memory is short.
func memoryLimit(s *config.Settings) (lines []string) {
	var m cgroup.Memory
	stalled, known := cgroup.ReadBoth(&m)
	if known {
		lines = append(lines, fmt.Sprintf("threads waited for memory for %d.%02d%% of the last "+
			"ten seconds (PSI, some avg10)", stalled/100, stalled%100))
	}
	if m.Short(0, stalled, false) {
		lines = append(lines, "memory is short: a heap of more than 32 MiB returns what is freed "+
			"to the kernel at once")
	}
	if m.Limit == 0 {
		return lines
	}
	lines = append(lines,
		"the control group's limit is "+size(m.Limit)+", "+size(m.Used)+" are used, "+
			size(m.Left())+" are left; "+beyond(&m))
	for i, t := range s.Tiers[:config.TierCount] {
		if t.Hard > m.Limit {
			lines = append(lines,
				prefix+tierNames[i]+"_HARD is "+size(t.Hard)+": the control "+
					"group's limit is reached first")
		}
	}
	return lines
}

// beyond says what the kernel does when the group needs more than the limit.
func beyond(m *cgroup.Memory) string {
	if m.High {
		return "the kernel slows a program that needs more (memory.high)"
	}
	return "the kernel kills a program that needs more"
}
