package main

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	accountLabels = []string{"account", "group", "user"}
	groupLabels   = []string{"group", "user"}

	membersDesc = newDesc("group_members", "Running processes of the group (TA_GROUP).",
		groupLabels)
)

// groupFamilies are the metrics of each tier and device of a group.
var groupFamilies = func() []family[*groupAccount] {
	type T = *groupAccount
	l := accountLabels
	return []family[T]{
		gauge(l, "group_used_bytes", "What the members of the group have reserved.",
			func(a T) uint64 { return a.Used }),
		gauge(l, "group_granted_bytes", "What they may reserve without asking the group.",
			func(a T) uint64 { return a.Granted }),
		counter(l, "group_refused",
			"Reservations that the group refused at its hard cap. Requests that a process itself "+
				"sends to a slower tier are in tier_hard_cap_reached_total only.",
			func(a T) uint64 { return a.Refused }),
		counter(l, "group_waits",
			"Requests below the process's TA_GROUP_MIN that waited for other members.",
			func(a T) uint64 { return a.Waits }),
		counter(l, "group_taken_bytes",
			"What members that ran short took of what others were granted and did not use.",
			func(a T) uint64 { return a.Taken }),
	}
}()

// groupCaps are the metrics of each cap of a group that is set.
var groupCaps = func() []family[*groupAccount] {
	type T = *groupAccount
	return []family[T]{
		gauge(accountLabels, "group_soft_cap_bytes", "Soft cap of the group. Absent: none.",
			func(a T) uint64 { return a.SoftCap }),
		gauge(accountLabels, "group_hard_cap_bytes", "Hard cap of the group. Absent: none.",
			func(a T) uint64 { return a.HardCap }),
	}
}()

// collectGroups collects all groups with a name.
func collectGroups(ch chan<- prometheus.Metric, groups []*processGroup) {
	for _, g := range groups {
		name, user := printable(g.Name), userName(g.Owner)
		ch <- &series{membersDesc, labelPairs(groupLabels, name, user), prometheus.GaugeValue,
			float64(g.living())}
		for i := range g.Accounts {
			a := &g.Accounts[i]
			labels := labelPairs(accountLabels, a.Name, name, user)
			collect(ch, groupFamilies, labels, a)
			collectSet(ch, groupCaps, labels, a)
		}
	}
}
