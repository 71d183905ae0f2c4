package tiers_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// model is the policy as the documentation of package tiers has it, for blocks that
// are mappings of their own and go back to the kernel when they are freed.
type model struct {
	soft, hard               [3]int64 // 0: no cap
	reroute, fail            bool
	current, peak            [3]int64
	over, rerouted, routed   [3]int64
	refused, violations      [3]int64
	blocks                   map[string]*modelBlock
	failedCalls, allocations int64
}

type modelBlock struct {
	hint string
	tier int
	size int64
}

var tierNames = [3]string{"fast", "normal", "slow"}

func home(hint string) int {
	switch hint {
	case "warm":
		return 1
	case "cold":
		return 2
	}
	return 0
}

func (m *model) fits(tier int, n int64, caps *[3]int64) bool {
	return caps[tier] == 0 || m.current[tier]+n <= caps[tier]
}

func (m *model) take(tier int, n int64) {
	m.current[tier] += n
	m.peak[tier] = max(m.peak[tier], m.current[tier])
	if !m.fits(tier, 0, &m.soft) {
		m.over[tier]++
	}
}

// reserve decides where n bytes go: to a tier, or nowhere (-1).
func (m *model) reserve(hint string, n int64) int {
	pinned := hint == "pin_fast"
	stays := !m.reroute || pinned || hint == "hot"
	var full, soft [3]bool
	refuse := func() int {
		m.count(&full)
		m.refused[home(hint)]++
		return -1
	}
	accept := func(tier int) int {
		m.take(tier, n)
		m.count(&full)
		for i := home(hint); i < tier; i++ {
			if full[i] {
				m.routed[i]++
			} else {
				m.rerouted[i]++
			}
		}
		return tier
	}
	anySoft := false
	for i := home(hint); i < 3; i++ {
		switch {
		case m.fits(i, n, &m.hard) && (stays || m.fits(i, n, &m.soft)):
			return accept(i)
		case m.fits(i, n, &m.hard):
			soft[i], anySoft = true, true
			continue
		}
		full[i] = true
		if (m.fail || pinned) && !anySoft {
			return refuse()
		}
	}
	for i := home(hint); i < 3; i++ {
		if soft[i] { // the first that only its soft cap has closed
			return accept(i)
		}
	}
	return refuse()
}

func (m *model) count(full *[3]bool) {
	for i, f := range full {
		if f {
			m.violations[i]++
		}
	}
}

// alloc, resize and free are commands for the driver with what the model wants.
func (m *model) alloc(name, hint string, n int64) string {
	m.allocations++
	tier := m.reserve(hint, n)
	if tier < 0 {
		m.failedCalls++
		return fmt.Sprintf("new %s 1 %s %d => ENOMEM*1\n", name, hint, n)
	}
	m.blocks[name] = &modelBlock{hint, tier, n}
	return fmt.Sprintf("new %s 1 %s %d => %s*1\n", name, hint, n, tierNames[tier])
}

// resize only grows. In place it is no request, only an increase under the hard cap;
// else it is a request for all of the block while the old one is still there.
func (m *model) resize(name string, n int64) string {
	b := m.blocks[name]
	if m.fits(b.tier, n-b.size, &m.hard) {
		m.current[b.tier] += n - b.size
		m.peak[b.tier] = max(m.peak[b.tier], m.current[b.tier])
	} else {
		m.violations[b.tier]++
		tier := m.reserve(b.hint, n)
		if tier < 0 {
			m.failedCalls++
			return fmt.Sprintf("resize %s %d => ENOMEM*1\n", name, n)
		}
		m.current[b.tier] -= b.size
		b.tier = tier
	}
	b.size = n
	return fmt.Sprintf("resize %s %d => %s*1\n", name, n, tierNames[b.tier])
}

func (m *model) free(name string) string {
	b := m.blocks[name]
	m.current[b.tier] -= b.size
	delete(m.blocks, name)
	return fmt.Sprintf("free %s => freed*1\n", name)
}

// hold compares a report with the model.
func (m *model) hold(t *testing.T, r *report) {
	t.Helper()
	for i, x := range r.tiers() {
		got := [7]int64{x.Current, x.Peak, x.SoftExceeded, x.Rerouted, x.RoutedSlow, x.Refused, x.Violations}
		want := [7]int64{m.current[i], m.peak[i], m.over[i], m.rerouted[i], m.routed[i], m.refused[i], m.violations[i]}
		if got != want {
			t.Errorf("%s: current, peak, soft_exceeded, rerouted, routed_slow, refused, violations\n %v, want\n %v", tierNames[i], got, want)
		}
	}
	if r.CallsFailed != m.failedCalls || r.Calls["ta_alloc"] != m.allocations {
		t.Errorf("%d of %d calls failed, want %d of %d", r.CallsFailed, r.Calls["ta_alloc"], m.failedCalls, m.allocations)
	}
}

// TestModel compares random requests with the model, under random caps and every
// policy but demote.
func TestModel(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := &model{reroute: seed&1 == 0, fail: seed&2 != 0, blocks: map[string]*modelBlock{}}
		env := []string{"TA_PURGE_DELAY=0", "TA_ON_SOFTCAP=warn", "TA_ON_HARDCAP=route_slow"}
		if m.reroute {
			env[1] = "TA_ON_SOFTCAP=reroute"
		}
		if m.fail {
			env[2] = "TA_ON_HARDCAP=fail"
		}
		for i, name := range tierNames {
			if r.IntN(4) != 0 {
				m.hard[i] = int64(20+r.IntN(60)) * mib
				env = append(env, fmt.Sprintf("TA_%s_HARD=%d", strings.ToUpper(name), m.hard[i]))
			}
			if r.IntN(4) != 0 {
				m.soft[i] = int64(10+r.IntN(50)) * mib
				if m.hard[i] != 0 {
					m.soft[i] = min(m.soft[i], m.hard[i])
				}
				env = append(env, fmt.Sprintf("TA_%s_SOFT=%d", strings.ToUpper(name), m.soft[i]))
			}
		}
		t.Run(strings.Join(env[1:], ","), func(t *testing.T) {
			p := play(t, env, "light\n"+m.play(r)+"json\n")
			m.hold(t, &p.json[0])
		})
	}
}

// play is a script of random requests.
func (m *model) play(r *rand.Rand) string {
	var script strings.Builder
	var names []string
	for i := range 400 {
		n := int64(5*mib + r.IntN(12)*kib*512)
		if r.IntN(16) == 0 {
			n *= 8 // above most caps
		}
		switch k := r.IntN(8); {
		case k < 4 || len(names) == 0:
			name := fmt.Sprint("b", i)
			script.WriteString(m.alloc(name, homes[r.IntN(len(homes))].hint, n))
			if m.blocks[name] != nil {
				names = append(names, name)
			}
		case k < 5:
			name := names[r.IntN(len(names))]
			if b := m.blocks[name]; b.size < n && b.hint != "pin_fast" { // a pinned one may be copied
				script.WriteString(m.resize(name, n))
			}
		default:
			at := r.IntN(len(names))
			script.WriteString(m.free(names[at]))
			names[at] = names[len(names)-1]
			names = names[:len(names)-1]
		}
	}
	return script.String()
}
