package follow

import (
	"slices"
	"testing"
	"time"
)

// memory is a simulated heap: regions of a MiB, of which a program touches some at each step.
type memory struct {
	pages []Pages
	pager Pager
	now   time.Duration
	outs  [3]int // regions by cause
	again int    // regions that went out less than a grace after they came back
	came  []time.Duration
	stuck func(i int) bool // the kernel refuses to page out region i
}

func heap(n int) *memory {
	m := &memory{pages: make([]Pages, n), came: make([]time.Duration, n)}
	for i := range m.pages {
		m.pages[i] = Pages{Start: uintptr(i) * mib, End: uintptr(i+1) * mib, Resident: mib,
			Rank: RankMiddle}
		m.came[i] = -time.Hour
	}
	return m
}

func (m *memory) resident() (n uint64) {
	for _, r := range m.pages {
		n += r.Resident
	}
	return n
}

// step has the program touch some regions with a heat, and then the pager look after d.
func (m *memory) step(d time.Duration, limit uint64, heat func(i int) float64) []Out {
	m.now += d
	for i := range m.pages {
		r := &m.pages[i]
		if h := heat(i); h >= 0 {
			r.Heat, r.Known = h, true
			if h > 0 && r.Resident == 0 {
				r.Resident, m.came[i] = mib, m.now
			}
		}
	}
	outs := m.pager.Plan(m.pages, limit, ^uint64(0), m.now)
	for _, o := range outs {
		m.outs[o.Cause]++
		if m.now-m.came[o.Region] < grace {
			m.again++
		}
		before := m.pages[o.Region]
		if m.stuck == nil || !m.stuck(o.Region) {
			m.pages[o.Region].Resident = 0
		}
		m.pager.Done(before, m.pages[o.Region].Resident, m.now)
	}
	return outs
}

// TestPagerKeepsTheCap: of a heap three times the cap the hot third stays, and nothing moves any
// more once that is so.
func TestPagerKeepsTheCap(t *testing.T) {
	for name, hot := range map[string]func(int) bool{
		"first": func(i int) bool { return i < 100 }, "last": func(i int) bool { return i >= 200 },
		"spread": func(i int) bool { return i%3 == 1 }} {
		m := heap(300)
		unknown := func(int) float64 { return -1 }
		m.step(0, 120*mib, unknown) // all of it is new
		if got := m.resident(); got > 120*mib || got < 115*mib {
			t.Errorf("%s: %d MiB resident after one plan", name, got/mib)
		}
		use := func(i int) float64 {
			if hot(i) {
				return 5
			}
			return 0
		}
		for range 40 {
			m.step(500*time.Millisecond, 120*mib, use)
		}
		went := m.outs
		for range 200 {
			m.step(time.Second, 120*mib, use)
		}
		for i, r := range m.pages {
			if hot(i) && r.Resident == 0 {
				t.Errorf("%s: hot region %d is out", name, i)
			}
		}
		if m.resident() > 120*mib || m.outs != went || m.again != 0 {
			t.Errorf("%s: %d MiB resident, out %v, then %v, %d at once again", name,
				m.resident()/mib, went, m.outs, m.again)
		}
	}
}

// TestPagerOrder: hints come first, then what is known to be cold, the coldest first, then what is
// new, the oldest first. Pinned memory stays.
func TestPagerOrder(t *testing.T) {
	m := heap(7)
	m.pages[0].Rank = RankHot
	m.pages[1].Fixed = true
	m.pages[2].Rank = RankCold
	heats := []float64{0, 0, 9, -1, 3, 1, -1}
	outs := m.step(time.Second, 1, func(i int) float64 { return heats[i] })
	want := []Out{{2, Coldest}, {5, Coldest}, {4, Coldest}, {3, Unknown}, {6, Unknown},
		{0, Coldest}}
	if !slices.Equal(outs, want) {
		t.Errorf("%v, not %v", outs, want)
	}
}

// TestPagerBounds: no more goes than is too much, less a margin, and than the budget.
func TestPagerBounds(t *testing.T) {
	var p Pager
	m := heap(128)
	if outs := p.Plan(m.pages, 128*mib, ^uint64(0), 0); len(outs) != 0 {
		t.Errorf("%d regions go within the cap", len(outs))
	}
	if outs := p.Plan(m.pages, 64*mib, ^uint64(0), 0); len(outs) != 65 {
		t.Errorf("%d regions go, not 64 and a margin of one", len(outs))
	}
	if outs := p.Plan(m.pages, 64*mib, 7*mib, 0); len(outs) != 7 {
		t.Errorf("%d regions go with a budget of 7 MiB", len(outs))
	}
}

// TestPagerDoesNotThrash: what came back stays for a grace whatever the cap, rests longer each
// time, and goes before that only where nothing else is left.
func TestPagerDoesNotThrash(t *testing.T) {
	m := heap(20)
	use := func(int) float64 { return 1 } // it does not fit
	for range 600 {
		m.step(100*time.Millisecond, 10*mib, use)
	}
	if m.again != 0 || m.outs[Again] == 0 {
		t.Errorf("%d regions went at once again, out %v", m.again, m.outs)
	}
	if back := m.pager.Back(); back == 0 || m.pager.Back() != 0 {
		t.Errorf("%d bytes came back", back)
	}
	// An hour later the resting ones stay, although they are as cold as the others.
	m = heap(20)
	cold := func(int) float64 { return 0 }
	m.step(0, 10*mib, cold)
	came := -1
	m.step(time.Minute, 11*mib, func(i int) float64 {
		if came < 0 && m.pages[i].Resident == 0 {
			came = i
			return 1
		}
		return 0
	})
	m.step(2*time.Second, 5*mib, cold)
	if came < 0 || m.pages[came].Resident == 0 || m.resident() > 5*mib {
		t.Errorf("region %d went, though it had just come back; %d MiB", came, m.resident()/mib)
	}
	m.step(leastRest, 0, cold)
	if m.resident() != 0 {
		t.Errorf("%d MiB stay after their rest", m.resident()/mib)
	}
}

// TestPagerRefused: what the kernel does not page out is left alone, longer each time, and others
// go in its place.
func TestPagerRefused(t *testing.T) {
	m := heap(20)
	tries := 0
	m.stuck = func(i int) bool {
		if i < 4 {
			tries++
		}
		return i < 4
	}
	cold := func(int) float64 { return 0 }
	for range 3000 {
		m.step(100*time.Millisecond, 10*mib, cold)
	}
	if m.resident() > 10*mib || m.resident() < 9*mib {
		t.Errorf("%d MiB resident", m.resident()/mib)
	}
	if tries > 4*6 {
		t.Errorf("%d tries in five minutes", tries)
	}
	if m.pager.Done(Pages{Start: 77}, 5, m.now) {
		t.Error("memory that nobody knows was refused")
	}
}

// TestPagerForgets: a new region at an old address has no past.
func TestPagerForgets(t *testing.T) {
	m := heap(2)
	m.step(0, 1, func(int) float64 { return 0 })
	m.pager.Plan(nil, mib, mib, m.now)
	m.pages[0].Resident = mib
	m.pager.Plan(m.pages, 5*mib, mib, m.now)
	if m.pager.Back() != 0 || len(m.pager.past) != 2 {
		t.Errorf("new memory came back: %+v", m.pager.past[0])
	}
}

// TestPagerBack: what comes back is counted, and what is used for the first time is not.
func TestPagerBack(t *testing.T) {
	var p Pager
	r := Pages{Start: mib, End: 2 * mib, Resident: mib / 4, Rank: RankMiddle}
	look := func(resident uint64) uint64 {
		r.Resident = resident
		p.Plan([]Pages{r}, 2*mib, noCap, time.Hour)
		return p.Back()
	}
	if back := look(mib / 4); back != 0 {
		t.Errorf("%d came back of what never went", back)
	}
	p.Done(r, 0, time.Hour)
	for i, c := range [][2]uint64{{mib / 8, mib / 8}, {mib, mib / 8}, {mib / 2, 0}, {mib, 0}} {
		if back := look(c[0]); back != c[1] {
			t.Errorf("look %d: %d came back, not %d", i, back, c[1])
		}
	}
}
