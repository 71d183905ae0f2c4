package tiers

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
)

var (
	modelSeed = flag.Uint64("model.seed", 0, "the one seed that TestModel runs; 0: its own few")
	modelOps  = flag.Int("model.ops", 25_000, "operations that TestModel runs with each seed")
)

// model is the policy in ordinary numbers, for one thread.
type model struct {
	account         [4]uintptr // the first tier with the same memory, of each
	soft, hard      [3]float64 // of that memory; 0: none
	softcap, action string
	now             [3]plainTier
}

type plainTier struct {
	current, peak                                   float64
	exceeded, rerouted, routed, refused, violations uint64
	attempted, movedPages, failedPages              uint64
}

// What stands between a request and a tier.
const (
	nothing = "nothing"
	bySoft  = "soft cap"
	byHard  = "hard cap"
)

// used is what lies in the memory of a tier.
func (m *model) used(tier int) (sum float64) {
	for i := range m.now {
		if m.account[i] == m.account[tier] {
			sum += m.now[i].current
		}
	}
	return sum
}

func (m *model) obstacle(tier int, n float64) string {
	after := m.used(tier) + n
	switch {
	case m.hard[tier] != 0 && after > m.hard[tier]:
		return byHard
	case m.soft[tier] != 0 && after > m.soft[tier]:
		return bySoft
	}
	return nothing
}

// reserve returns the tier, or -1, or the tier to trim in the second result.
func (m *model) reserve(hint string, n float64, trimmed map[int]bool) (tier, trim int) {
	home := map[string]int{"hot": 0, "pin_fast": 0, "prefer_fast": 0, "warm": 1, "cold": 2}[hint]
	moves := m.softcap == "reroute" && (hint == "prefer_fast" || hint == "warm" || hint == "cold")
	met, asked := map[int]string{}, map[uintptr]bool{}
	firstSoft := -1
	for tier = home; tier <= 2; tier++ {
		if asked[m.account[tier]] {
			continue
		}
		what := m.obstacle(tier, n)
		if what == nothing || what == bySoft && !moves {
			m.take(home, tier, n, met)
			return tier, -1
		}
		largest := m.hard[tier]
		if what == bySoft {
			largest = m.soft[tier]
		}
		if !trimmed[tier] && n <= largest {
			return -1, tier
		}
		met[tier], asked[m.account[tier]] = what, true
		if what == bySoft && firstSoft < 0 {
			firstSoft = tier
		}
		if what == byHard && firstSoft < 0 && (hint == "pin_fast" || m.action == "fail") {
			break
		}
	}
	if firstSoft >= 0 {
		m.take(home, firstSoft, n, met)
		return firstSoft, -1
	}
	m.violate(met)
	m.now[home].refused++
	return -1, -1
}

func (m *model) violate(met map[int]string) {
	for tier, what := range met {
		if what == byHard {
			m.now[tier].violations++
		}
	}
}

func (m *model) take(home, tier int, n float64, met map[int]string) {
	m.violate(met)
	for passed := home; passed < tier; passed++ {
		switch met[passed] {
		case byHard:
			m.now[passed].routed++
		case bySoft:
			m.now[passed].rerouted++
		}
	}
	m.charge(tier, n)
	if m.soft[tier] != 0 && m.used(tier) > m.soft[tier] {
		m.now[tier].exceeded++
	}
}

func (m *model) charge(tier int, n float64) {
	m.now[tier].current += n
	m.now[tier].peak = max(m.now[tier].peak, m.now[tier].current)
}

func (m *model) room(tier int, n float64) bool {
	after := m.used(tier) + n
	// 7/8 of a soft cap is rounded up to whole bytes.
	return (m.hard[tier] == 0 || after <= m.hard[tier]) &&
		(m.soft[tier] == 0 || after*8 < m.soft[tier]*7+8)
}

func (m *model) excess(tier int) float64 {
	if m.soft[tier] == 0 {
		return 0
	}
	return max(0, m.used(tier)-m.soft[tier])
}

// simulation runs operations on the policy and on the model.
type simulation struct {
	*rand.Rand
	m     model
	env   string
	scale uint64 // caps and requests are about this large
	held  []holding
}

type holding struct{ tier, n uint64 }

var hintWords = []string{"hot", "warm", "cold", "pin_fast", "prefer_fast"}

// choose draws a policy.
func (s *simulation) choose(t *testing.T) {
	s.scale = 1 << (4 + s.Uint64N(36))
	m := &s.m
	m.softcap = []string{"reroute", "reroute", "warn", "demote"}[s.IntN(4)]
	m.action = []string{"route_slow", "fail"}[s.IntN(2)]
	entries := []string{"ON_SOFTCAP=" + m.softcap, "ON_HARDCAP=" + m.action}
	for i, name := range []string{"FAST", "NORMAL", "SLOW"} {
		hard, soft := uint64(0), uint64(0)
		if s.IntN(4) > 0 {
			hard = 1 + s.Uint64N(s.scale)
			entries = append(entries, fmt.Sprintf("%s_HARD=%d", name, hard))
		}
		if s.IntN(3) > 0 {
			soft = 1 + s.Uint64N(s.scale)
			if hard != 0 {
				soft = 1 + s.Uint64N(hard)
			}
			entries = append(entries, fmt.Sprintf("%s_SOFT=%d", name, soft))
		}
		m.hard[i], m.soft[i] = float64(hard), float64(soft)
	}
	m.account = memories[s.IntN(len(memories))]
	m.shareCaps()
	s.env = fmt.Sprint(entries, m.account)
	setupOn(t, &m.account, "prog", entries...)
}

// memories are the ways in which tiers can be the same memory.
var memories = [][4]uintptr{apart, apart, {0, 0, 2, 3}, {0, 1, 1, 3}, {0, 1, 0, 3}, {0, 0, 0, 3}}

// shareCaps makes the smallest caps of tiers that are the same memory those of all of them. A soft
// cap above the hard one is none.
func (m *model) shareCaps() {
	own := *m
	smallest := func(caps [3]float64, tier int) (least float64) {
		for i, c := range caps {
			if m.account[i] == m.account[tier] && c != 0 && (least == 0 || c < least) {
				least = c
			}
		}
		return least
	}
	for tier := range m.now {
		m.soft[tier], m.hard[tier] = smallest(own.soft, tier), smallest(own.hard, tier)
		if m.hard[tier] != 0 && m.soft[tier] > m.hard[tier] {
			m.soft[tier] = 0
		}
	}
}

// size draws a request: of any size, and often just what fits.
func (s *simulation) size(tier int) uint64 {
	if s.IntN(4) == 0 {
		limit := s.m.hard[tier]
		if s.IntN(2) == 0 || limit == 0 {
			limit = s.m.soft[tier]
		}
		edge := limit - s.m.used(tier) + float64(s.IntN(3)-1)
		if edge >= 0 {
			return uint64(edge)
		}
	}
	return s.Uint64N(s.scale) >> s.IntN(16)
}

func (s *simulation) step() error {
	tier := s.IntN(3)
	n := s.size(tier)
	t, size := uintptr(tier), uintptr(n)
	switch op := s.IntN(17); {
	case op < 7:
		return s.reserve(s.IntN(5), n)
	case op < 13:
		s.release()
	case op == 13:
		want := s.m.obstacle(tier, float64(n)) != byHard
		if want {
			s.m.charge(tier, float64(n))
			s.held = append(s.held, holding{uint64(tier), n})
		} else {
			s.m.now[tier].violations++
		}
		if got := Admit(t, size); got != want {
			return fmt.Errorf("Admit(%d, %d) = %v", tier, n, got)
		}
	case op == 14:
		if got, want := Room(t, size), s.m.room(tier, float64(n)); got != want {
			return fmt.Errorf("Room(%d, %d) = %v", tier, n, got)
		}
		if got, want := Full(t, size), s.m.obstacle(tier, float64(n)) == byHard; got != want {
			return fmt.Errorf("Full(%d, %d) = %v", tier, n, got)
		}
		if got, want := Excess(t), s.m.excess(tier); float64(got) != want {
			return fmt.Errorf("Excess(%d) = %d, not %g", tier, got, want)
		}
	case op == 15:
		s.shift()
	default:
		s.m.now[tier].attempted++
		s.m.now[tier].movedPages += n % 100
		s.m.now[tier].failedPages += n % 7
		Moved(t, uintptr(n%100), uintptr(n%7))
	}
	return nil
}

// reserve goes through with one request; now and then something is trimmed.
func (s *simulation) reserve(hint int, n uint64) error {
	trimmed, bits := map[int]bool{}, uintptr(0)
	for {
		tier, trim := s.m.reserve(hintWords[hint], float64(n), trimmed)
		want := uintptr(tier)
		switch {
		case trim >= 0:
			want = Trim | uintptr(trim)
		case tier < 0:
			want = Refused
		}
		got := Reserve(uintptr(hint), uintptr(n), bits)
		if got&^Last != want {
			return fmt.Errorf("Reserve(%s, %d, %b) = %#x, not %#x", hintWords[hint], n, bits, got,
				want)
		}
		if trim < 0 {
			if tier >= 0 {
				s.held = append(s.held, holding{uint64(tier), n})
			}
			return s.compare()
		}
		trimmed[trim] = true
		if last := s.m.refuses(hintWords[hint], float64(n), trimmed); (got&Last != 0) != last {
			return fmt.Errorf("Reserve(%s, %d, %b) = %#x, which is refused then: %v",
				hintWords[hint], n, bits, got, last)
		}
		for range s.IntN(3) {
			s.release()
		}
		bits |= 1 << trim
	}
}

// refuses reports whether the request would be refused now, without another word of trimming.
func (m model) refuses(hint string, n float64, trimmed map[int]bool) bool {
	tier, trim := m.reserve(hint, n, trimmed)
	return tier < 0 && trim < 0
}

// shift gives a charge to another tier of the same memory, if it has one.
func (s *simulation) shift() {
	if len(s.held) == 0 {
		return
	}
	h, to := &s.held[s.IntN(len(s.held))], s.Uint64N(3)
	if to == h.tier || !Same(uintptr(h.tier), uintptr(to)) {
		return
	}
	Shift(uintptr(h.tier), uintptr(to), uintptr(h.n))
	s.m.now[h.tier].current -= float64(h.n)
	s.m.charge(int(to), float64(h.n))
	h.tier = to
}

// release gives back one charge, or a part of it.
func (s *simulation) release() {
	if len(s.held) == 0 {
		return
	}
	i := s.IntN(len(s.held))
	h := &s.held[i]
	n := h.n
	if s.IntN(4) == 0 {
		n = s.Uint64N(n + 1)
	}
	h.n -= n
	Release(uintptr(h.tier), uintptr(n))
	s.m.now[h.tier].current -= float64(n)
	if h.n == 0 {
		*h = s.held[len(s.held)-1]
		s.held = s.held[:len(s.held)-1]
	}
}

// compare compares all that Fill tells of capacity, and each account with its tiers.
func (s *simulation) compare() error {
	for i := range s.m.now {
		if got := memory(uintptr(i)).current; float64(got) != s.m.used(i) {
			return fmt.Errorf("the memory of tier %d has %d, its tiers %g", i, got, s.m.used(i))
		}
	}
	for i, t := range filled() {
		got := plainTier{float64(t.BytesCurrent), float64(t.BytesPeak), t.SoftExceeded, t.Rerouted,
			t.RoutedSlow, t.Refused,
			t.CapacityViolations, t.Migrations.Attempted, t.Migrations.MovedPages,
			t.Migrations.FailedPages}
		if got != s.m.now[i] {
			return fmt.Errorf("tier %d: %+v, not %+v", i, got, s.m.now[i])
		}
	}
	return nil
}

// TestModel compares random operations with the model, each seed with several policies.
func TestModel(t *testing.T) {
	first, n := uint64(1), uint64(100)
	if *modelSeed != 0 {
		first, n = *modelSeed, 1
	}
	var seen [3]plainTier // what happened in any run
	for seed := first; seed < first+n; seed++ {
		s := &simulation{Rand: rand.New(rand.NewPCG(seed, 5))}
		s.choose(t)
		for op := range *modelOps {
			if err := s.step(); err != nil {
				t.Fatalf("operation %d under %s: %v\nreplay: go test ./tiers -run TestModel "+
					"-model.seed=%d", op, s.env, err, seed)
			}
		}
		if err := s.compare(); err != nil {
			t.Fatalf("in the end under %s: %v\nreplay: go test ./tiers -run TestModel "+
				"-model.seed=%d", s.env, err, seed)
		}
		for i, p := range s.m.now {
			seen[i].exceeded += p.exceeded
			seen[i].rerouted += p.rerouted
			seen[i].routed += p.routed
			seen[i].refused += p.refused
			seen[i].violations += p.violations
		}
	}
	for i, p := range seen {
		if *modelSeed == 0 && (p.exceeded == 0 || p.refused == 0 || p.violations == 0 ||
			i < 2 && (p.rerouted == 0 || p.routed == 0)) {
			t.Errorf("tier %d: the operations never led to all decisions: %+v", i, p)
		}
	}
	t.Logf("%d operations each with %d policies: %+v", *modelOps, n, seen)
}
