package background

import (
	"errors"
	"runtime"
	"strings"
	"time"

	"tieralloc/alloc"
	"tieralloc/alloc/region"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/interpose"
	"tieralloc/stats"
	"tieralloc/tiers"
	"tieralloc/tiers/follow"
	"tieralloc/tiers/heat"
)

// A follower moves memory by its use, as TA_ON_SOFTCAP=follow says: it lists the regions of the
// heap, asks the kernel how often each is touched, and has package follow decide.
type follower struct {
	list     region.List
	mappings region.Mappings
	joined   bool          // the last sample found regions in one mapping
	sources  []heat.Source // those that have not failed; the first is in use once it has started
	started  bool
	setting  string   // who asked for it, in lines on standard error
	refused  []string // why those before do not work
	failed   string   // the line about one that failed, until another has taken over
	estimate *heat.Estimate
	planner  follow.Planner
	planned  []follow.Region // what the last plan was made of
	depth    float64         // of the last sample: see heat.Depth
	told     time.Time       // when the heap profile was told the heat last
	last     time.Time

	cpu     time.Duration // processor time of the thread at first
	filling time.Duration // that of the looks for room since the last sample
	filled  uintptr       // bytes that moved into it
}

const (
	// togetherMost is how many regions are told apart at a time, about, because each may be a
	// mapping of its own, of which a process may have 65,530.
	togetherMost = 24_000

	// regionsMost is how many regions of the heap are told apart, at most. In a larger heap
	// neighbours are one region, because each part costs a pass over all memory.
	regionsMost = 3 * togetherMost

	// wanted is the resolution that a source must have, in bytes.
	wanted = 2 << 20
)

func followUse() {
	runtime.LockOSThread() // so the time of the thread is what this costs
	f := follower{setting: "TA_ON_SOFTCAP=follow", sources: heat.Sources(),
		estimate: heat.NewEstimate(nil), last: time.Now(), cpu: heat.ThreadTime()}
	begun := time.Now()
	tiers.CountSource(stats.SourceNone)
	for pace := (heat.Pace{}); ; {
		for !due() {
			if !f.fill(heat.Shortest) {
				return
			}
		}
		before := heat.ThreadTime()
		moves, err := f.sample()
		cost := heat.ThreadTime() - before + f.filling
		if err != nil {
			f.say("memory moves by age: " + err.Error())
			tiers.CountSource(stats.SourceNone)
			tiers.FollowByAge()
			return
		}
		moved := f.carry(moves) + f.filled
		f.filling, f.filled = 0, 0
		tiers.CountFollowTime(uint64(heat.ThreadTime() - f.cpu))
		wait := pace.Wait(heat.Taken{Cost: cost, At: time.Since(begun), Size: f.list.Bytes(),
			Moved: moved, Depth: f.depth})
		if !f.fill(wait) {
			return // run says so
		}
	}
}

// look is the time between two looks for room.
const look = heat.Shortest / 2

// fill waits for the next sample. When the program frees memory of a faster tier meanwhile, what
// was hot at the last one goes up. It reports false where rest does.
func (f *follower) fill(wait time.Duration) bool {
	for end := time.Now().Add(wait); wait > 0; wait = time.Until(end) {
		if wait > look+look/2 {
			wait = look
		}
		if !rest(wait) {
			return false
		}
		before := heat.ThreadTime()
		moves := f.planner.Fill(accounts(), budget(look))
		f.filling += heat.ThreadTime() - before
		if len(moves) != 0 {
			f.filled += f.carry(moves)
			tiers.CountFollowTime(uint64(heat.ThreadTime() - f.cpu))
		}
	}
	return true
}

// sample measures once and decides what moves. It fails where nothing can measure.
func (f *follower) sample() ([]follow.Move, error) {
	f.list.Renew(interpose.Survey, regionsMost, togetherMost)
	ranges := rangesOf(&f.list)
	f.estimate.Follow(ranges)
	rates, err := f.measure(ranges)
	if err != nil {
		return nil, err
	}
	f.estimate.Add(rates)
	now := time.Now()
	elapsed := now.Sub(f.last)
	f.last = now
	f.planned = f.described()
	f.depth = heat.Depth(rates, func(i int) uint32 { return f.planned[i].Tier })
	f.count()
	f.tellProfile()
	return f.planner.Plan(f.planned, accounts(), elapsed, budget(elapsed)), nil
}

// rangesOf is where the regions of a list lie.
func rangesOf(list *region.List) []heat.Range {
	ranges := make([]heat.Range, len(list.All))
	for i := range ranges {
		r := &list.All[i]
		ranges[i] = heat.Range{Start: r.Start(), End: r.End()}
	}
	return ranges
}

// measure measures all regions of the list, a part of them after the other.
func (f *follower) measure(ranges []heat.Range) ([]heat.Rate, error) {
	rates := make([]heat.Rate, len(ranges))
	parts := f.list.Parts(togetherMost)
	for _, part := range parts {
		regions := make([]region.Region, len(part))
		some := make([]heat.Range, len(part))
		for k, i := range part {
			regions[k], some[k] = f.list.All[i], ranges[i]
		}
		of := make([]heat.Rate, len(part))
		if err := f.measurePart(regions, some, of); err != nil {
			return nil, err
		}
		for k, i := range part {
			rates[i] = of[k]
		}
	}
	return rates, nil
}

// measurePart has the best source that works set the rates of regions.
func (f *follower) measurePart(regions []region.Region, ranges []heat.Range,
	rates []heat.Rate) error {
	for ; len(f.sources) > 0; f.sources, f.started = f.sources[1:], false {
		s := f.sources[0]
		if err := f.begin(s, regions, ranges); err != nil {
			f.refused = append(f.refused, err.Error())
			continue
		}
		resolution, err := s.Sample(rates)
		if err == nil {
			f.joined = resolution != 0
			if f.failed != "" {
				f.say(f.failed)
				f.failed = ""
			}
			return nil
		}
		s.Stop()
		f.refused = append(f.refused, s.Name()+": "+err.Error())
		f.failed = "heat cannot be measured by " + f.refused[len(f.refused)-1]
	}
	return errors.New("nothing measures heat here: " +
		strings.Join(f.refused, "; "))
}

// begin starts a source, or gives one that is started the regions.
func (f *follower) begin(s heat.Source, regions []region.Region, ranges []heat.Range) error {
	if _, ok := s.(*heat.Referenced); ok {
		f.mappings.TellApart(regions, f.joined, interpose.Distinguish)
	}
	if f.started {
		return s.Start(ranges)
	}
	if _, refused := heat.First([]heat.Source{s}, ranges, wanted); len(refused) != 0 {
		return refused[0]
	}
	f.started = true
	return nil
}

// described is the regions for the planner.
func (f *follower) described() []follow.Region {
	all := make([]follow.Region, len(f.list.All))
	for i := range all {
		r := &f.list.All[i]
		all[i] = follow.Region{Start: r.Start(), End: r.End(),
			Tier: uint32(tiers.AccountOf(uintptr(r.Tier())).First), Rank: r.Pieces[0].Rank,
			Fixed: r.Pieces[0].Fixed, Known: f.estimate.Known(i), Heat: f.estimate.Heat(i),
			Spread: f.estimate.Spread(i)}
	}
	return all
}

// accounts is the tiers for the planner.
func accounts() []follow.Tier {
	all := make([]follow.Tier, config.TierCount)
	for t := range all {
		a := tiers.AccountOf(uintptr(t))
		all[t] = follow.Tier{Present: a.First == uintptr(t), Bytes: a.Current, Soft: a.Soft,
			Hard: a.Hard}
	}
	return all
}

// due reports whether there may be something to move, now or soon: a tier with a cap is half
// full, and there is a slower one.
func due() bool {
	all := accounts()
	for t := range all {
		_, slower := tiers.Below(uintptr(t))
		if limit := min(all[t].Soft, all[t].Hard); slower && limit != ^uint64(0) &&
			all[t].Bytes >= limit/2 {
			return true
		}
	}
	return false
}

// budget is how many bytes TA_MIGRATE_BW lets move in a period.
func budget(elapsed time.Duration) uint64 {
	bandwidth := config.InForce.MigrateBW
	if bandwidth == 0 {
		return ^uint64(0)
	}
	return uint64(float64(bandwidth) * max(elapsed, heat.Shortest).Seconds())
}

// carry makes the moves, and returns how many bytes moved.
func (f *follower) carry(moves []follow.Move) (bytes uintptr) {
	for _, m := range moves {
		r := &f.list.All[m.Region]
		moved, refused, putOff := carry(r, m.To)
		bytes += moved
		if refused != 0 {
			f.planner.Refused(f.planned[m.Region])
			tiers.CountMove(tiers.MoveRefused, refused)
		}
		if putOff != 0 {
			tiers.CountMove(tiers.MovePutOff, putOff)
		}
		if moved != 0 {
			f.mappings.Moved(r, m.To)
			tiers.CountMove(kinds[m.Cause], moved)
			keep(r, moved, uint8(target(&r.Pieces[0], m.To)), heatCauses[m.Cause])
		}
	}
	return bytes
}

// carry moves a region to a tier, or to the one that it is meant for if that is the same memory. It
// returns how many bytes moved, were refused, and were put off because the tier is full.
func carry(r *region.Region, tier uint32) (moved, refused, putOff uintptr) {
	for i := range r.Pieces {
		p := &r.Pieces[i]
		to := target(p, tier)
		answer := alloc.FollowLater
		for range patience {
			if answer = interpose.Follow(p, to); answer != alloc.FollowLater || !rest(period) {
				break
			}
		}
		switch answer {
		case alloc.FollowMoved:
			moved += p.Bytes
		case alloc.FollowRefused:
			refused += p.Bytes
		case alloc.FollowFull:
			putOff += p.Bytes
		}
	}
	return moved, refused, putOff
}

// target is a tier, or the one that a piece is meant for if that is the same memory.
func target(p *alloc.Region, tier uint32) uint32 {
	if tiers.Same(uintptr(p.Home), uintptr(tier)) {
		return p.Home
	}
	return tier
}

// patience bounds how often TA_MIGRATE_BW is asked for one piece.
const patience = 1000

// say prints a line that names the setting.
func (f *follower) say(text string) {
	var l raw.Line
	l.Text("tieralloc: ")
	l.Text(f.setting)
	l.Text(": ")
	l.Text(text)
	l.Tell()
}
