package tiers

import (
	"testing"

	"tieralloc/stats"
)

// TestFollowing: what the control plane counts is in the report of a process that follows, and
// begins anew in its child.
func TestFollowing(t *testing.T) {
	hot, cold := [3]uint64{10, 0, 30}, [3]uint64{0, 20, 40}
	count := func() {
		CountSource(stats.SourceDamon)
		CountSample(9, &[3]uint64{1, 2, 3}, &[3]uint64{4, 5, 6})
		CountSample(7, &hot, &cold)
		for kind := UpRoom; kind <= OutRefused; kind++ {
			CountMove(kind, 100*kind)
			CountMove(kind, 1)
		}
		CountResident(3, 20)
		CountResident(9, 22)
		CountFollowTime(5)
		CountFollowTime(77)
	}
	filled := func() (f [3]stats.Tier) {
		report.Figures = stats.Figures{}
		return filled()
	}

	setup(t, "prog", "ON_SOFTCAP=follow", "NORMAL_SOFT=1M")
	if filled(); report.Follows != 0 || report.Following != (stats.Following{}) {
		t.Errorf("before it began: %+v", report.Following)
	}
	count()
	got := filled()
	want := stats.Following{Source: stats.SourceDamon, Samples: 2, Regions: 7, ThreadNs: 77,
		UpRoom: stats.Moves{Regions: 2, Bytes: 1}, UpHotter: stats.Moves{Regions: 2, Bytes: 101},
		DownColder:  stats.Moves{Regions: 2, Bytes: 201},
		DownSoftcap: stats.Moves{Regions: 2, Bytes: 301},
		Refused:     stats.Moves{Regions: 2, Bytes: 401},
		PutOff:      stats.Moves{Regions: 2, Bytes: 501},
		OutCold:     stats.Moves{Regions: 2, Bytes: 601},
		OutUnknown:  stats.Moves{Regions: 2, Bytes: 701},
		OutAgain:    stats.Moves{Regions: 2, Bytes: 801},
		OutRefused:  stats.Moves{Regions: 2, Bytes: 901},
		BytesBack:   42, BytesResident: 9}
	if report.Follows != 1 || report.Following != want {
		t.Errorf("%+v, not %+v", report.Following, want)
	}
	for i := range got {
		if got[i].BytesHot != hot[i] || got[i].BytesCold != cold[i] {
			t.Errorf("tier %d: hot %d, cold %d", i, got[i].BytesHot, got[i].BytesCold)
		}
	}
	ForkChild()
	if got = filled(); report.Follows != 0 || report.Following != (stats.Following{}) ||
		got[2].BytesHot != 0 {
		t.Errorf("in a child: %+v", report.Following)
	}

	setup(t, "prog", "ON_SOFTCAP=demote", "NORMAL_SOFT=1M")
	count()
	if got = filled(); report.Follows != 0 || got[0].BytesHot != 0 {
		t.Errorf("a process that does not follow: %+v", report.Following)
	}
	following = followed{}
}
