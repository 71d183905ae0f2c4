package main

import (
	"tieralloc/internal/cgroup"
	"tieralloc/internal/config"
)

// memoryLimit tells how much memory the control groups of this process leave to it and to what it
// starts; nothing where they have no limit.
func memoryLimit(s *config.Settings) (lines []string) {
	var m cgroup.Memory
	cgroup.Read(&m)
	if m.Limit == 0 {
		return nil
	}
	lines = append(lines,
		"the control group has "+size(m.Limit)+", of which "+size(m.Left())+" are left; the "+
			"kernel kills a program that needs more")
	for i, t := range s.Tiers[:config.TierCount] {
		if t.Hard > m.Limit {
			lines = append(lines,
				prefix+tierNames[i]+"_HARD is "+size(t.Hard)+": the control "+
					"group's limit is met before")
		}
	}
	return lines
}
