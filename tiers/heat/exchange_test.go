package heat

import (
	"cmp"
	"slices"
)

const (
	// leastRatio is how many times as hot a region must be to take another's place.
	leastRatio = 1.5

	// leastSigmas is by how many standard deviations of their difference it must be hotter. The
	// hottest and the coldest of some thousand equal regions are 5 apart.
	leastSigmas = 6
)

// Exchange is a region that is to move up, and the one that makes room for it: none if Down is
// negative.
type Exchange struct{ Up, Down int }

// Exchanges says what should move, the greatest gain first, when those of the regions that are true
// in fast are in the fast tier, and it has room for so many more. It takes regions to be of one
// size. Unknown ones stay where they are.
func (e *Estimate) Exchanges(fast []bool, room int) []Exchange {
	var up, down []int
	for i, f := range fast {
		switch {
		case !e.Known(i):
		case f:
			down = append(down, i)
		default:
			up = append(up, i)
		}
	}
	byHeat := func(a, b int) int { return cmp.Compare(e.Heat(a), e.Heat(b)) }
	slices.SortStableFunc(down, byHeat)
	slices.SortStableFunc(up, func(a, b int) int { return byHeat(b, a) })
	var all []Exchange
	for _, i := range up {
		x, than, spread := Exchange{i, -1}, 0.0, Spread{}
		if len(all) >= room {
			if len(all)-room >= len(down) {
				break
			}
			x.Down = down[len(all)-room]
			than, spread = e.Heat(x.Down), e.Spread(x.Down)
		}
		if e.Heat(i) <= leastRatio*than ||
			Apart(e.Heat(i), e.Spread(i), than, spread) <= leastSigmas {
			break
		}
		all = append(all, x)
	}
	return all
}
