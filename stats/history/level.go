package history

import "math"

// Levels of heat in a row: a logarithm of touches per page of 4 KiB and second.
const (
	Unknown   = 0 // not measured yet
	Untouched = 1 // less than Least

	octaves = 32
	steps   = (math.MaxUint8 - 2.0) / octaves // levels in one octave

	// Least is the least heat that has a level of its own: once in some 70 minutes.
	Least = 1.0 / 4096
)

// Level is the level of a heat. A heat that is no number is Unknown.
func Level(heat float64) uint8 {
	switch {
	case math.IsNaN(heat):
		return Unknown
	case heat < Least:
		return Untouched
	}
	return uint8(min(2+math.Round(math.Log2(heat/Least)*steps), math.MaxUint8))
}

// Heat is what Level was made of, within 5%. It is 0 for Unknown and Untouched.
func Heat(level uint8) float64 {
	if level <= Untouched {
		return 0
	}
	return Least * math.Exp2(float64(level-2)/steps)
}
