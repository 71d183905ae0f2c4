package heat

import "math"

// Spread says how far chance takes the estimate of a region's heat from the truth. A look finds
// whether a page was touched in a time Look. If touches come at random, with a heat h it finds one
// with probability 1-exp(-h*Look): see rate.
type Spread struct {
	Look     float64 // in seconds
	Dilution float64 // 1/n of an estimate from n looks
	Relative float64 // what looks do not explain of the variance of a heat of 1
}

// Deviation is the standard deviation of an estimate h, to first order.
func (s Spread) Deviation(h float64) float64 {
	v := s.Relative * h * h
	if s.Dilution > 0 {
		v += s.Dilution * math.Expm1(h*s.Look) / (s.Look * s.Look)
	}
	return math.Sqrt(v)
}

// Apart is by how many standard deviations of their difference the heat a is above b: what a
// two-proportion z-test with pooled proportion finds of looks of one length. It is as good where
// all looks find a touch, and the heat could be anything from there on.
func Apart(a float64, ofA Spread, b float64, ofB Spread) float64 {
	look := (ofA.Look + ofB.Look) / 2
	found := func(h float64) float64 { return -math.Expm1(-h * look) }
	pooled := (found(a) + found(b)) / 2
	// A relative change d of the heat changes what is found by (1-pooled)*log(1-pooled)*d.
	steep := (1 - pooled) * math.Log1p(-pooled)
	variance := pooled*(1-pooled)*(ofA.Dilution+ofB.Dilution) +
		steep*steep*(ofA.Relative+ofB.Relative)
	return (found(a) - found(b)) / math.Sqrt(variance)
}
