package main

import (
	"tieralloc/internal/cgroup"
	"tieralloc/internal/config"
)

// memoryLimit says how much memory the control groups of this process leave to it and its children.
// It returns nothing if they have no limit.
func memoryLimit(s *config.Settings) (lines []string) {
	var m cgroup.Memory
	cgroup.Read(&m)
	if m.Limit == 0 {
		return nil
	}
	lines = append(lines,
		"the control group's limit is "+size(m.Limit)+", "+size(m.Left())+" of it are left; the "+
			"kernel kills a program that needs more")
	for i, t := range s.Tiers[:config.TierCount] {
		if t.Hard > m.Limit {
			lines = append(lines,
				prefix+tierNames[i]+"_HARD is "+size(t.Hard)+": the control "+
					"group's limit is reached first")
		}
	}
	return lines
}
