package main

import "github.com/prometheus/client_golang/prometheus"

var (
	ofAccount = []string{"group", "user", "account"}
	ofGroup   = []string{"group", "user"}

	membersDesc = newDesc("group_members", "Running processes of the group (TA_GROUP).",
		ofGroup)
)

// groupFamilies are the metrics of each tier and device of a group.
var groupFamilies = []family[*groupAccount]{
	gauge(ofAccount, "group_used_bytes", "What the members of the group have reserved.",
		func(a *groupAccount) uint64 { return a.Used }),
	gauge(ofAccount, "group_granted_bytes", "What they may reserve without asking the group.",
		func(a *groupAccount) uint64 { return a.Granted }),
	counter(ofAccount, "group_refused",
		"Reservations that the group refused at its hard cap. Requests that a process itself "+
			"sends to a slower tier are in tier_hard_cap_reached_total only.",
		func(a *groupAccount) uint64 { return a.Refused }),
	counter(ofAccount, "group_waits",
		"Requests below the process's TA_GROUP_MIN that waited for other members.",
		func(a *groupAccount) uint64 { return a.Waits }),
	counter(ofAccount, "group_taken_bytes",
		"What members that ran short took of what others were granted and did not use.",
		func(a *groupAccount) uint64 { return a.Taken }),
	gauge(ofAccount, "group_soft_cap_bytes", "Soft cap of the group. Absent: none.",
		func(a *groupAccount) uint64 { return a.SoftCap }).ifSet(),
	gauge(ofAccount, "group_hard_cap_bytes", "Hard cap of the group. Absent: none.",
		func(a *groupAccount) uint64 { return a.HardCap }).ifSet(),
}

// collectGroups collects all groups with a name.
func collectGroups(ch chan<- prometheus.Metric, groups []*processGroup) {
	for _, g := range groups {
		name, user := printable(g.Name), userName(g.Owner)
		ch <- gaugeOf(membersDesc, float64(g.living()), name, user)
		for i := range g.Accounts {
			a := &g.Accounts[i]
			collect(ch, groupFamilies, a, name, user, a.Name)
		}
	}
}
