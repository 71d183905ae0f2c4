package plan

import (
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/testlib"
	"tieralloc/numa"
)

func TestBalance(t *testing.T) {
	many := func(nodes uint64) numa.Place { return place(nodes, numa.PreferredMany) }
	moves := func(nodes uint64) numa.Place { return place(nodes, numa.PreferredMany|numa.Balanced) }
	up := func(nodes, to uint64) numa.Place {
		return numa.Place{Nodes: nodes, Promote: to, Mode: numa.PreferredMany | numa.Balanced}
	}
	const fast, normal, slow = config.TierFast, config.TierNormal, config.TierSlow
	for _, c := range []struct {
		name    string
		tree    testlib.Sysfs
		set     *config.Settings
		change  func(*config.Settings)
		tiering bool
		want    [3]numa.Place
	}{
		{name: "named nodes", tree: testlib.WithCXL, set: settings(1, 2, 4),
			want: [3]numa.Place{moves(1), moves(2), moves(4)}},
		{name: "tiering", tree: testlib.WithCXL, set: settings(1, 2, 4), tiering: true,
			want: [3]numa.Place{moves(1), moves(2), up(4, 3)}},
		{name: "0", tree: testlib.WithCXL, set: settings(1, 2, 4), tiering: true,
			change: func(s *config.Settings) { s.NumaBalancing = config.BalanceNever },
			want:   [3]numa.Place{many(1), many(2), many(4)}},
		{name: "a hard cap", tree: testlib.WithCXL, set: settings(1, 2, 4), tiering: true,
			change: func(s *config.Settings) { s.Tiers[fast].Hard = 1 << 30 },
			want:   [3]numa.Place{many(1), moves(2), up(4, 2)}},
		{name: "a soft cap in percent", tree: testlib.WithCXL, set: settings(1, 2, 4),
			tiering: true,
			change:  func(s *config.Settings) { s.Tiers[normal].SoftPart = 50 },
			want:    [3]numa.Place{moves(1), moves(2), up(4, 3)}},
		{name: "a cap on another tier of the node", tree: testlib.WithCXL, set: settings(3, 3, 4),
			tiering: true,
			change:  func(s *config.Settings) { s.Tiers[fast].Hard = 1 << 30 },
			want:    [3]numa.Place{many(3), many(3), moves(4)}},
		{name: "a cap on the slow tier", tree: testlib.WithCXL, set: settings(3, 3, 4),
			tiering: true,
			change:  func(s *config.Settings) { s.Tiers[slow].Hard = 1 << 30 },
			want:    [3]numa.Place{moves(3), moves(3), many(4)}},
		{name: "1 passes caps", tree: testlib.WithCXL, set: settings(3, 3, 4),
			change: func(s *config.Settings) {
				s.NumaBalancing,
					s.Tiers[fast].Hard = config.BalanceAlways, 1<<30
			},
			want: [3]numa.Place{moves(3), moves(3), up(4, 3)}},
		{name: "a socket as slow memory", tree: testlib.WithCXL, set: settings(1, 1, 2),
			tiering: true,
			want:    [3]numa.Place{moves(1), moves(1), moves(2)}},
		{name: "two slow nodes", tree: testlib.WithHBM, set: settings(1, 1, 6), tiering: true,
			want: [3]numa.Place{moves(1), moves(1), moves(6)}},
		{name: "interleaved", tree: testlib.WithCXL,
			set: settings(1, 2, 4, config.SpreadPrefer, config.SpreadInterleave), tiering: true,
			want: [3]numa.Place{moves(1), place(2, numa.Interleave), up(4, 3)}},
		{name: "one kind of memory", tree: testlib.Sockets, set: settings(0, 0, 0), tiering: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := probed(t, c.tree)
			if c.change != nil {
				c.change(c.set)
			}
			m, _, _ := planned(t, c.set, top)
			before := m
			mode := uint64(0)
			if c.tiering {
				mode = numa.Tiering
			}
			Balance(c.set, top, &m, mode)
			if can := c.set.NumaBalancing != config.BalanceNever &&
				!m.Simulated; m.Moving != (can && c.tiering) {
				t.Errorf("the kernel moves memory: %t", m.Moving)
			}
			if [3]numa.Place(m.Tier[:3]) != c.want || m.Pin != before.Pin ||
				m.Tier[3] != before.Tier[3] {
				t.Errorf("%+v, not %+v", m, c.want)
			}
		})
	}
}
