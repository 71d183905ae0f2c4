package heat

import "math"

// repeats learns how much less a region's heat differs from sample to sample than if looks found
// touches independently, all with the same probability. Where a program uses the same few pages of
// a region in each window and no others, samples hardly differ, and a few of them tell that region
// from one in which it uses fewer pages. The zero value knows nothing.
type repeats struct {
	sum    float64 // of squared differences, each as a multiple of what chance makes of it
	weight float64 // of these
}

const (
	// repeatsLife is in samples. After so many a difference weighs half as much.
	repeatsLife = 24

	// repeatsPrior is the weight of what is assumed: that looks are independent.
	repeatsPrior = 1

	// repeatsSigmas is by how many standard deviations samples must agree better than independent
	// looks would.
	repeatsSigmas = 2

	// mostRepeat limits what one difference says: a program that begins something else differs by
	// much, once.
	mostRepeat = 9
)

// repeatsKeep is what a sample leaves of the weight of those before.
var repeatsKeep = math.Exp2(-1.0 / repeatsLife)

// add takes the difference of two samples, and its standard deviation if looks are independent.
func (r *repeats) add(difference, chance float64) {
	if chance == 0 {
		return
	}
	z := difference / chance
	r.sum = repeatsKeep*r.sum + min(z*z, mostRepeat)
	r.weight = repeatsKeep*r.weight + 1
}

// share is the part of the variance of independent looks that the region has, at most, and at most
// 1. Of independent looks the sum has a chi-squared distribution, of which Wilson and Hilferty
// (1931) give a low quantile.
func (r *repeats) share() float64 {
	if r.weight == 0 {
		return 1
	}
	v := 2 / (9 * r.weight)
	root := max(0, 1-v-repeatsSigmas*math.Sqrt(v))
	return min(1, (r.sum+repeatsPrior)/(r.weight*root*root*root+repeatsPrior))
}
