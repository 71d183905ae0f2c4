package main

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
)

// heatStops are colours from cold to hot whose lightness rises evenly (matplotlib's inferno).
var heatStops = [...][3]float64{{20, 11, 53}, {58, 9, 99}, {96, 19, 110}, {133, 33, 107},
	{169, 46, 94}, {203, 65, 73}, {230, 93, 47}, {247, 131, 17}, {252, 173, 18}, {245, 219, 75},
	{252, 255, 164}}

// heatUnknown is the colour of memory whose heat is not known.
var heatUnknown = color.RGBA{150, 150, 150, 255}

// position is where a heat is on the scale, from 0 to 1.
func (g *heatGrid) position(heat float64) float64 {
	if !(heat > 0) {
		return 0
	}
	return min(1, max(0, 1+math.Log10(heat/g.hottest)/heatDecades))
}

// at is the heat at a position of the scale.
func (g *heatGrid) at(position float64) float64 {
	return g.hottest * math.Pow(10, (position-1)*heatDecades)
}

// heatColour is the colour at a position of the scale.
func heatColour(position float64) color.RGBA {
	at := position * float64(len(heatStops)-1)
	i := min(int(at), len(heatStops)-2)
	var c [3]uint8
	for k := range c {
		from, to := heatStops[i][k], heatStops[i+1][k]
		c[k] = uint8(math.Round(from + (to-from)*(at-float64(i))))
	}
	return color.RGBA{c[0], c[1], c[2], 255}
}

// colourOf is the colour of a cell.
func (g *heatGrid) colourOf(c *heatCell) color.RGBA {
	if !c.known {
		return heatUnknown
	}
	return heatColour(g.position(c.heat))
}

// hex writes a colour as CSS has it.
func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// touches writes a heat.
func touches(heat float64) string {
	if heat >= 100 {
		return count(uint64(min(heat, 1e9)))
	}
	return strconv.FormatFloat(heat, 'g', 2, 64)
}

// timeLabel writes a time relative to the last sample.
func timeLabel(seconds float64) string {
	digits := 0
	if math.Abs(seconds) < 10 {
		digits = 1
	}
	text := strconv.FormatFloat(seconds, 'f', digits, 64)
	if seconds == 0 {
		text = "0"
	}
	return text + "s"
}
