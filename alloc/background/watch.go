package background

import (
	"time"

	"tieralloc/interpose"
	"tieralloc/stats/profile"
)

// watch measures heat for the heap profile, and nothing moves.
func watch() {
	s := sampler{partly: true, follower: follower{setting: "TA_PROFILE_HEAT=1"}}
	s.wanted.Store(true)
	if err := s.run(); err != nil {
		s.say("the profile has no more heat: " + err.Error())
	}
}

// tellProfile has the heap profile, if there is one, note the heat of the last sample. While much
// of the heap is new, the heat of the rest does not represent it.
func (f *follower) tellProfile() {
	now := time.Now()
	elapsed := now.Sub(f.told)
	first := f.told.IsZero()
	f.told = now
	if first || !profile.On() {
		return
	}
	regions := make([]profile.Region, 0, len(f.planned))
	known := uintptr(0)
	for i := range f.planned {
		if p := &f.planned[i]; p.Known {
			regions = append(regions, profile.Region{Start: p.Start, End: p.End, Heat: p.Heat})
			known += p.End - p.Start
		}
	}
	if known > 0 && known >= f.list.Bytes()/10*9 {
		interpose.Heat(regions, elapsed)
	}
}
