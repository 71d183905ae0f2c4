package background

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"tieralloc/alloc/region"
	"tieralloc/internal/config"
	"tieralloc/interpose"
	"tieralloc/stats"
	"tieralloc/tiers"
	"tieralloc/tiers/follow"
	"tieralloc/tiers/heat"
)

// A pager keeps the resident memory of the heap within a soft cap, as TA_SLOW_BACKEND=swap says: it
// has the coldest regions paged out. They come back by page faults. What is hot it has from a
// sampler on a thread of its own, which sleeps while it measures.
type pager struct {
	list      region.List
	residency heat.Residency
	plan      follow.Pager
	watch     region.Watch
	limit     uint64 // the soft cap
	begun     time.Time
	ranges    []heat.Range
	resident  []uint64  // bytes of each range
	trimAt    time.Time // no earlier is the next count
	credit    follow.Credit
	sampler   sampler
}

func pageOut() {
	runtime.LockOSThread() // so the time of the thread is what this costs
	p := pager{limit: tiers.LeastSoft(), begun: time.Now()}
	p.sampler.setting = "TA_SLOW_BACKEND=swap"
	tiers.CountSource(stats.SourceNone)
	go func() {
		if err := p.sampler.run(); err != nil {
			p.sampler.say("the oldest memory is paged out first: " + err.Error())
		}
	}()
	cpu := heat.ThreadTime()
	for rest(p.watch.Wait()) {
		used, err := heat.Anonymous()
		if err == nil {
			p.sampler.wanted.Store(used >= p.limit/2)
			err = p.look(p.watch.Resident(used))
		}
		if err != nil {
			p.sampler.say(err.Error())
			p.sampler.ended.Store(true)
			return
		}
		spent := int64(heat.ThreadTime() - cpu)
		tiers.CountFollowTime(uint64(spent + p.sampler.spent.Load()))
	}
}

// look counts what is resident after a sample, or if it seems too much, and then pages out.
func (p *pager) look(resident uint64) error {
	sampled := p.sampler.sampled.Swap(false)
	if !sampled && (resident <= p.limit || time.Now().Before(p.trimAt)) {
		return nil
	}
	before := heat.ThreadTime()
	p.list.Renew(interpose.Survey, regionsMost, togetherMost)
	p.ranges = rangesOf(&p.list)
	pages, err := p.count()
	if err != nil {
		return err
	}
	now := time.Since(p.begun)
	most := p.credit.Budget(config.InForce.MigrateBW, now)
	outs := p.plan.Plan(pages, p.limit, most, now)
	cost := heat.ThreadTime() - before
	p.sampler.counting.Store(int64(cost))
	moved, err := p.out(pages, outs)
	tiers.CountResident(p.watch.Last(), p.plan.Back())
	p.sampler.moved.Add(uint64(moved))
	p.trimAt = time.Now()
	if moved == 0 {
		p.trimAt = p.trimAt.Add(max(heat.Shortest/4, cost*heat.Budget))
	}
	return err
}

// count asks what is resident. It describes the regions for the plan.
func (p *pager) count() ([]follow.Pages, error) {
	used, err := heat.Anonymous()
	if err != nil {
		return nil, err
	}
	p.resident = make([]uint64, len(p.ranges))
	if err := p.residency.Count(p.ranges, p.resident); err != nil {
		return nil, err
	}
	estimate := p.sampler.lock()
	defer p.sampler.unlock()
	estimate.Follow(p.ranges)
	pages, sum := make([]follow.Pages, len(p.ranges)), uint64(0)
	for i := range pages {
		piece := &p.list.All[i].Pieces[0]
		pages[i] = follow.Pages{Start: p.ranges[i].Start, End: p.ranges[i].End,
			Resident: p.resident[i], Rank: piece.Rank, Fixed: piece.Fixed,
			Known: estimate.Seen(i) > 1, Heat: estimate.Heat(i)}
		sum += p.resident[i]
	}
	p.watch.Counted(sum, used)
	return pages, nil
}

// outKinds is how the report counts what went out, by its cause.
var outKinds = [...]uintptr{follow.Coldest: tiers.OutCold, follow.Unknown: tiers.OutUnknown,
	follow.Again: tiers.OutAgain}

// out pages regions out, and returns how many bytes went. It fails where no memory can be.
func (p *pager) out(pages []follow.Pages, outs []follow.Out) (bytes uintptr, err error) {
	for _, o := range outs {
		r := pages[o.Region]
		one, left := []heat.Range{{Start: r.Start, End: r.End}}, []uint64{r.Resident}
		answer := heat.PageOut(one[0])
		switch answer {
		case nil:
			if err := p.residency.Count(one, left); err != nil {
				return bytes, err
			}
		case unix.EINVAL: // locked
		case unix.EPERM, unix.ENOSYS:
			return bytes, answer
		default: // the memory is gone
			continue
		}
		if p.plan.Done(r, left[0], time.Since(p.begun)) {
			tiers.CountMove(tiers.OutRefused, uintptr(left[0]))
		}
		if went := r.Resident - min(left[0], r.Resident); went != 0 {
			tiers.CountMove(outKinds[o.Cause], uintptr(went))
			p.watch.Went(went)
			keep(&p.list.All[o.Region], uintptr(went), stats.HeatSwap, stats.HeatPagedOut)
			bytes += uintptr(went)
		}
	}
	p.credit.Spend(uint64(bytes))
	return bytes, nil
}
