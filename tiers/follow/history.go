package follow

// history is what the planner remembers of a region.
type history struct {
	tier    uint32
	seen    int     // the last period in which the region was listed
	changed int     // the period in which it was first seen in its tier
	since   float64 // the same, in seconds
	moved   bool    // it has moved since it was first seen
	up      bool    // its last move was up
	turns   int     // how often it came back down, less what was forgiven
	stay    float64 // seconds of its last stay in an upper tier, 0 if it had none
	refused int     // how often it was refused since its last move
	wait    int     // the period from which it may be tried again

	promised float64 // the heat that it was last counted on to keep
	wentHeat float64 // the same when it went up, 0 once it turned cold

	known bool    // its heat was known
	peak  float64 // the greatest heat lately
	looks int     // periods of known heat
	begun int     // of them, those before this window
	now   extent  // of heat in this window
	last  extent  // of heat in the window before
	full  bool    // the window before was a whole one
	score score   // of periods in which it was hot enough to go up
	fit   score   // of those in which it was hot enough to go up if there was room
}

const (
	// rest is for how many periods a region does not turn back after its first move: as long as an
	// estimate of heat needs to follow a change.
	rest = 8

	// mostTurns limits rest to 128 periods.
	mostTurns = 4

	// forgiven is how many periods of staying in one tier make up for a turn.
	forgiven = 128

	// soon is within how many patiences memory turns cold that should not have gone up.
	soon = 4

	// cold is which part of the heat that it was counted on to keep is left of such memory.
	cold = 0.5

	// mostRefused limits the wait after a refusal to 256 periods.
	mostRefused = 6

	// windows is how many patiences the window is long over which the least heat is taken. The one
	// before counts too.
	windows = 4

	// steady is which part of its peak the heat of a region keeps that is still in use.
	steady = 0.8

	// regular is which part of the greatest heat the least is, of a region that is used again and
	// again.
	regular = 1.0 / 8

	// fade is what a period leaves of a peak: half in 16 periods.
	fade = 0.9576
)

// arrive notes that the region was found in another tier, and reports whether that is an upper one.
func (h *history) arrive(tier uint32, period int, now float64) (up bool) {
	up = tier < h.tier
	h.turns = max(0, h.turns-(period-h.changed)/forgiven)
	if up {
		h.wentHeat = h.promised
	} else {
		if h.moved && h.up {
			h.turns = min(h.turns+1, mostTurns)
		}
		h.stay, h.wentHeat = now-h.since, 0
	}
	h.tier, h.changed, h.since = tier, period, now
	h.moved, h.up, h.refused, h.wait = true, up, 0, 0
	return up
}

// cooled reports, once, that the region is cold so soon after it went up that it should not have.
func (h *history) cooled(r *Region, period, patience int) bool {
	if h.wentHeat == 0 || period-h.changed > soon*patience || r.Heat > h.wentHeat*cold {
		return false
	}
	h.wentHeat = 0
	return true
}

// look takes in the heat of a period.
func (h *history) look(r *Region, period, patience int) {
	h.seen, h.known = period, r.Known
	if !r.Known {
		h.score, h.fit, h.peak, h.looks, h.begun, h.full = 0, 0, 0, 0, 0, false
		return
	}
	h.peak = max(r.Heat, h.peak*fade)
	if h.looks == 0 {
		h.now = extent{r.Heat, r.Heat}
	} else if h.looks-h.begun >= windows*patience {
		h.last, h.now, h.begun, h.full = h.now, extent{r.Heat, r.Heat}, h.looks, true
	}
	h.now = h.now.with(extent{r.Heat, r.Heat})
	h.looks++
}

// extent is the least and the greatest of some heats.
type extent struct{ least, most float64 }

// with is the extent of both.
func (e extent) with(other extent) extent {
	return extent{min(e.least, other.least), max(e.most, other.most)}
}

// falling reports that the region was hotter not long ago, by more than chance.
func (h *history) falling(r *Region) bool {
	return r.Heat+2*r.Spread.Deviation(r.Heat) < steady*h.peak
}

// score is periods for which a region was hot, less those in which its heat fell.
type score int

// count counts a period in which the region was hot enough, or was not.
func (s *score) count(hot, falling bool) {
	switch {
	case !hot:
		*s = 0
	case falling:
		*s = max(0, *s-1)
	default:
		*s = min(*s+1, mostPatience)
	}
}

// lasting is the heat that the region can be counted on to keep, in touches per page and second. It
// is 0 for one that may be hot for once only.
func (h *history) lasting(r *Region, patience int) float64 {
	if int(h.score) >= patience {
		return r.Heat
	}
	e := h.now.with(h.last)
	if !h.full || e.least < regular*e.most {
		return 0
	}
	return e.least
}

// lastingInRoom is the same, of a region that needs to take no other's place.
func (h *history) lastingInRoom(r *Region, patience int) float64 {
	if int(h.fit) >= patience {
		return r.Heat
	}
	return h.lasting(r, patience)
}

// resting reports that the region moved the other way not long ago.
func (h *history) resting(up bool, period int) bool {
	return h.moved && h.up != up && period-h.changed < rest<<h.turns
}

// refuse notes that the region could not be moved.
func (h *history) refuse(period int) {
	h.refused = min(h.refused+1, mostRefused)
	h.wait = period + 1 + 4<<h.refused
}

// residence is for how many seconds a region is expected to be of use in an upper tier.
func (h *history) residence(now float64) float64 {
	expected := now - h.since
	if h.stay > 0 {
		expected = h.stay
	}
	return min(max(expected, leastResidence), mostResidence)
}
