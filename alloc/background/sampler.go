package background

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"tieralloc/interpose"
	"tieralloc/stats"
	"tieralloc/tiers"
	"tieralloc/tiers/heat"
)

// watchedMost is how many regions are measured of a heap of which a part is enough.
const watchedMost = 8192

// A sampler measures how often each region is touched, for a pager or for the heap profile.
type sampler struct {
	partly   bool          // a part of a large heap is enough, with all its regions told apart
	wanted   atomic.Bool   // there may be something to page out
	ended    atomic.Bool   // nothing is paged out any more
	sampled  atomic.Bool   // the estimate is new
	moved    atomic.Uint64 // bytes paged out since the last sample
	counting atomic.Int64  // ns that the pager takes after a sample
	spent    atomic.Int64  // ns of processor time

	mu       sync.Mutex
	follower // its estimate is guarded by mu
}

// lock returns the estimate, until unlock.
func (s *sampler) lock() *heat.Estimate {
	s.mu.Lock()
	if s.estimate == nil {
		s.estimate = heat.NewEstimate(nil)
	}
	return s.estimate
}

func (s *sampler) unlock() { s.mu.Unlock() }

// run samples until that fails, or until ended.
func (s *sampler) run() error {
	runtime.LockOSThread() // so the time of the thread is what this costs
	s.sources = heat.Sources()
	begun, cpu := time.Now(), heat.ThreadTime()
	for pace := (heat.Pace{}); ; {
		for !s.wanted.Load() {
			if s.ended.Load() || !rest(heat.Shortest/10) {
				return nil
			}
		}
		before := heat.ThreadTime()
		err := s.sample()
		s.spent.Store(int64(heat.ThreadTime() - cpu))
		if err != nil {
			tiers.CountSource(stats.SourceNone)
		}
		cost := heat.ThreadTime() - before + time.Duration(s.counting.Load())
		wait := pace.Wait(heat.Taken{Cost: cost, At: time.Since(begun), Size: s.list.Bytes(),
			Moved: uintptr(s.moved.Swap(0))})
		s.sampled.Store(true)
		if err != nil || s.ended.Load() || !rest(wait) {
			return err
		}
	}
}

// sample measures once.
func (s *sampler) sample() error {
	if s.partly {
		s.list.RenewPart(interpose.Survey, watchedMost)
	} else {
		s.list.Renew(interpose.Survey, regionsMost, togetherMost)
	}
	ranges := rangesOf(&s.list)
	rates, err := s.measure(ranges)
	if err != nil {
		return err
	}
	estimate := s.lock()
	defer s.unlock()
	estimate.Follow(ranges)
	estimate.Add(rates)
	s.planned = s.described()
	s.count()
	s.tellProfile()
	return nil
}
