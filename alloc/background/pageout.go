package background

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"tieralloc/alloc/region"
	"tieralloc/internal/raw"
	"tieralloc/interpose"
	"tieralloc/stats"
	"tieralloc/tiers"
	"tieralloc/tiers/follow"
	"tieralloc/tiers/heat"
)

// A pager keeps the resident memory of the heap within a soft cap, as TA_SLOW_BACKEND=swap says: it
// has the coldest regions paged out. They come back by page faults.
type pager struct {
	follower
	residency heat.Residency
	plan      follow.Pager
	pace      heat.Pace
	watch     region.Watch
	limit     uint64 // the soft cap
	begun     time.Time
	ranges    []heat.Range
	resident  []uint64 // bytes of each range
	blind     bool     // nothing measures heat
	sampleAt  time.Time
	trimAt    time.Time
	outAt     time.Time // of the last paging out
}

func pageOut() {
	runtime.LockOSThread() // so the time of the thread is what this costs
	p := pager{limit: tiers.LeastSoft(), begun: time.Now()}
	p.sources, p.estimate, p.last = heat.Sources(), heat.NewEstimate(nil), p.begun
	p.outAt = p.begun
	tiers.CountSource(stats.SourceNone)
	cpu := heat.ThreadTime()
	for rest(p.watch.Wait()) {
		used, err := heat.Anonymous()
		if err == nil {
			err = p.look(p.watch.Resident(used))
		}
		if err != nil {
			sayOut(err.Error())
			return
		}
		tiers.CountFollowTime(uint64(heat.ThreadTime() - cpu))
	}
}

// look samples heat if that is due, and pages out if so much resident memory is too much.
func (p *pager) look(resident uint64) error {
	now := time.Now()
	sampling := resident >= p.limit/2 && !now.Before(p.sampleAt)
	if !sampling && (resident <= p.limit || now.Before(p.trimAt)) {
		return nil
	}
	before := heat.ThreadTime()
	p.renew()
	if sampling && !p.blind {
		if err := p.sampleHeat(); err != nil {
			sayOut("the oldest memory is paged out first: " + err.Error())
			tiers.CountSource(stats.SourceNone)
			p.blind = true
		}
	}
	pages, err := p.count()
	if err != nil {
		return err
	}
	outs := p.plan.Plan(pages, p.limit, budget(time.Since(p.outAt)), time.Since(p.begun))
	cost := heat.ThreadTime() - before
	moved, err := p.out(pages, outs)
	tiers.CountResident(p.watch.Last(), p.plan.Back())
	if sampling {
		p.sampleAt = time.Now().Add(p.pace.Wait(cost, time.Since(p.begun), moved, p.list.Bytes()))
	}
	p.trimAt = time.Now()
	if moved == 0 {
		p.trimAt = p.trimAt.Add(max(heat.Shortest, cost*heat.Budget))
	}
	return err
}

// renew lists the regions anew.
func (p *pager) renew() {
	p.list.Renew(interpose.Survey, regionsMost)
	p.ranges = p.ranges[:0]
	for i := range p.list.All {
		r := &p.list.All[i]
		p.ranges = append(p.ranges, heat.Range{Start: r.Start(), End: r.End()})
	}
	p.estimate.Follow(p.ranges)
}

// sampleHeat measures once.
func (p *pager) sampleHeat() error {
	rates := make([]heat.Rate, len(p.ranges))
	if err := p.measure(p.ranges, rates); err != nil {
		return err
	}
	p.estimate.Add(rates)
	p.planned = p.described()
	p.follower.count()
	return nil
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
	pages, sum := make([]follow.Pages, len(p.ranges)), uint64(0)
	for i := range pages {
		piece := &p.list.All[i].Pieces[0]
		pages[i] = follow.Pages{Start: p.ranges[i].Start, End: p.ranges[i].End,
			Resident: p.resident[i], Rank: piece.Rank, Fixed: piece.Fixed,
			Known: p.estimate.Seen(i) > 1, Heat: p.estimate.Heat(i)}
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
			bytes += uintptr(went)
		}
	}
	if len(outs) != 0 {
		p.outAt = time.Now()
	}
	return bytes, nil
}

// sayOut prints a line.
func sayOut(text string) {
	var l raw.Line
	l.Text("tieralloc: TA_SLOW_BACKEND=swap: ")
	l.Text(text)
	l.Tell()
}
