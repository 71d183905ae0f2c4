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
	hint  string
	tier  int
	size  int64
	first int64 // bytes of it that are in another tier, in; the rest is in tier
	in    int
}

// tierName is the tier of its first byte.
func (b *modelBlock) tierName() string {
	if b.first != 0 {
		return tierNames[b.in]
	}
	return tierNames[b.tier]
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

const splitStep = 2 * mib

// divide decides about n bytes more for a block that has so many in its tier, none if it is new:
// where they do not fit whole, what is left of the first tier with a step of the block takes their
// first part, and the next that has room the rest.
func (m *model) divide(b *modelBlock, n int64) bool {
	stays := !m.reroute || b.hint == "hot"
	var full [3]bool
	sent := false
	for pass := range 2 {
		if stays && pass == 0 {
			continue
		}
		rest, first, in := n, int64(0), -1
		for i := b.tier; i < 3; i++ {
			limit := m.hard[i]
			if pass == 0 && m.soft[i] != 0 {
				limit = m.soft[i]
			}
			if limit == 0 || m.current[i]+rest <= limit {
				full[i] = false
				m.divided(b, i, rest, in, first, &full)
				return true
			}
			full[i] = !m.fits(i, rest, &m.hard)
			sent = sent || !full[i]
			if m.fail && !sent {
				break
			}
			if in >= 0 {
				continue
			}
			left := max(0, min(limit-m.current[i], rest-1))
			first = max(0, (b.size+left)/splitStep*splitStep-b.size)
			if first != 0 || b.size != 0 {
				in = i
				rest -= first
				// even if there is no room for the rest
				m.peak[i] = max(m.peak[i], m.current[i]+first)
			}
		}
	}
	return false
}

// divided counts what divide has decided: first bytes for a tier, if any, and the rest for another.
func (m *model) divided(b *modelBlock, tier int, rest int64, in int, first int64, full *[3]bool) {
	if in >= 0 {
		m.current[in] += first
		b.first, b.in = b.size+first, in
	}
	m.take(tier, rest)
	m.count(full)
	for i := b.tier; i < tier; i++ {
		if full[i] {
			m.routed[i]++
		} else {
			m.rerouted[i]++
		}
	}
	b.tier, b.size = tier, b.size+first+rest
}

func (m *model) count(full *[3]bool) {
	for i, f := range full {
		if f {
			m.violations[i]++
		}
	}
}

// leadIn is what a mapping may have before its block, in bytes.
const leadIn = 4 * kib

// alloc, resize and free are commands for the driver with what the model wants, for blocks whose
// mappings take n bytes.
func (m *model) alloc(name, hint string, n int64) string {
	m.allocations++
	b := m.block(hint, n)
	if b == nil {
		m.failedCalls++
		return fmt.Sprintf("new %s 1 %s %d => ENOMEM*1\n", name, hint, n-leadIn)
	}
	m.blocks[name] = b
	return fmt.Sprintf("new %s 1 %s %d => %s*1\n", name, hint, n-leadIn, b.tierName())
}

// block is a new one, or nil.
func (m *model) block(hint string, n int64) *modelBlock {
	b := &modelBlock{hint: hint, tier: home(hint)}
	if hint != "pin_fast" && m.divide(b, n) {
		return b
	}
	if b.tier = m.reserve(hint, n); b.tier < 0 {
		return nil
	}
	b.size = n
	return b
}

// resize only grows. In place it is no request, only an increase under the cap; beyond that the
// block is split, unless it is so already, or else it is a request for all of the block while the
// old one is still there.
func (m *model) resize(name string, n int64) string {
	b := m.blocks[name]
	more := n - b.size
	sent := m.reroute && b.hint != "hot" && b.first == 0 // where the soft cap is in the way
	switch {
	case m.fits(b.tier, more, &m.hard) && !(sent && !m.fits(b.tier, more, &m.soft)):
		m.current[b.tier] += more
		m.peak[b.tier] = max(m.peak[b.tier], m.current[b.tier])
		b.size = n
	case b.first == 0 && m.divide(b, more):
	default:
		m.violations[b.tier]++
		fresh := m.block(b.hint, n)
		if fresh == nil {
			m.failedCalls++
			return fmt.Sprintf("resize %s %d => ENOMEM*1\n", name, n-leadIn)
		}
		m.release(b)
		m.blocks[name], b = fresh, fresh
	}
	return fmt.Sprintf("resize %s %d => %s*1\n", name, n-leadIn, b.tierName())
}

func (m *model) release(b *modelBlock) {
	m.current[b.in] -= b.first
	m.current[b.tier] -= b.size - b.first
}

func (m *model) free(name string) string {
	m.release(m.blocks[name])
	delete(m.blocks, name)
	return fmt.Sprintf("free %s => freed*1\n", name)
}

// hold compares a report with the model.
func (m *model) hold(t *testing.T, r *report) {
	t.Helper()
	for i, x := range r.tiers() {
		got := [7]int64{x.Current, x.Peak, x.SoftExceeded, x.Rerouted, x.RoutedSlow, x.Refused,
			x.Violations}
		want := [7]int64{m.current[i], m.peak[i], m.over[i], m.rerouted[i], m.routed[i],
			m.refused[i], m.violations[i]}
		if got != want {
			t.Errorf("%s: current, peak, soft_exceeded, rerouted, routed_slow, refused, "+
				"violations\n %v, want\n %v", tierNames[i], got, want)
		}
	}
	if r.CallsFailed != m.failedCalls || r.Calls["ta_alloc"] != m.allocations {
		t.Errorf("%d of %d calls failed, want %d of %d", r.CallsFailed, r.Calls["ta_alloc"],
			m.failedCalls, m.allocations)
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
			// a pinned one may be copied
			if b := m.blocks[name]; b.size < n && b.hint != "pin_fast" {
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
