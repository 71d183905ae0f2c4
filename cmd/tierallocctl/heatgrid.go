package main

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"tieralloc/stats"
	"tieralloc/stats/history"
	"tieralloc/stats/live"
)

// heatGrid is a heat map: lines of addresses, lowest first, by samples, oldest first.
type heatGrid struct {
	lines   []heatLine
	seconds []float64 // of each sample, relative to the last
	cells   [][]heatCell
	hottest float64 // the heat at the upper end of the scale
	moves   []heatMoved
	tiers   [4]bool // those that occur
}

// heatLine is the memory of a line.
type heatLine struct {
	start, end uint64
	gap        uint64 // bytes between the line before and this one that are left out
}

// heatCell is the memory of a line at a sample.
type heatCell struct {
	used, known bool
	heat        float64 // the mean, if known
	tier        int     // that of most bytes
	up, down    bool    // some moved to a faster or a slower tier since the sample before
}

// heatMoved is a move with its time in seconds, relative to the last sample.
type heatMoved struct {
	stats.HeatMove
	seconds float64
}

// heatDecades is what the scale of heat spans.
const heatDecades = 4

// heatUnit is the least memory of a line.
const heatUnit = 64 << 10

// newHeatGrid draws the last samples, so many at most, in about so many lines. There must be one.
func newHeatGrid(h *live.History, lines, columns int) *heatGrid {
	samples := h.Samples[max(0, len(h.Samples)-max(columns, 1)):]
	g := &heatGrid{lines: linesOf(extentsOf(samples, lines), lines)}
	last := samples[len(samples)-1].UnixNs
	g.cells = make([][]heatCell, len(g.lines))
	for i := range g.cells {
		g.cells[i] = make([]heatCell, len(samples))
	}
	for column, s := range samples {
		g.seconds = append(g.seconds, secondsAfter(last, s.UnixNs))
		g.fill(column, s.Rows)
	}
	if g.hottest == 0 {
		g.hottest = 1
	}
	for _, m := range h.Moves {
		g.moves = append(g.moves, heatMoved{m, secondsAfter(last, m.UnixNs)})
		for column := 1; column < len(samples); column++ {
			if samples[column-1].UnixNs <= m.UnixNs && m.UnixNs < samples[column].UnixNs {
				g.mark(column, &m)
				break
			}
		}
	}
	return g
}

// secondsAfter is b - a in seconds.
func secondsAfter(a, b uint64) float64 { return float64(int64(b-a)) / 1e9 }

// extent is addresses without a gap.
type extent struct{ start, end uint64 }

func (e extent) bytes() uint64 { return e.end - e.start }

// extentsOf is where the samples have memory. Gaps count as memory if they are small, or if there
// are more than a few to so many lines.
func extentsOf(samples []live.Sample, lines int) []extent {
	var all []extent
	for _, s := range samples {
		for _, r := range s.Rows {
			all = append(all, extent{r.Start, r.Start + uint64(r.Pages)<<12})
		}
	}
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.start, b.start) })
	joined := joinExtents(all, 0)
	var total uint64
	var gaps []uint64
	for i, e := range joined {
		total += e.bytes()
		if i > 0 {
			gaps = append(gaps, e.start-joined[i-1].end)
		}
	}
	least := total / uint64(max(lines, 1)) // a gap of less would be less than a line
	if most := max(lines/6, 1) - 1; len(gaps) > most {
		slices.Sort(gaps)
		least = max(least, gaps[len(gaps)-most-1])
	}
	return joinExtents(joined, least)
}

// joinExtents joins those that overlap, adjoin, or have a gap of at most so many bytes.
func joinExtents(sorted []extent, gap uint64) (joined []extent) {
	for _, e := range sorted {
		last := len(joined) - 1
		if last >= 0 && (e.start <= joined[last].end || e.start-joined[last].end <= gap) {
			joined[last].end = max(joined[last].end, e.end)
			continue
		}
		joined = append(joined, e)
	}
	return joined
}

// linesOf divides extents into about so many lines, by their sizes.
func linesOf(extents []extent, lines int) (all []heatLine) {
	var total float64
	for _, e := range extents {
		total += float64(e.bytes())
	}
	for i, e := range extents {
		units := (e.bytes()-1)/heatUnit + 1
		n := uint64(float64(lines) * float64(e.bytes()) / total)
		n = max(1, min(n, units))
		gap := uint64(0)
		if i > 0 {
			gap = e.start - extents[i-1].end
		}
		start := e.start
		for k := range n {
			end := e.start + (units/n*(k+1)+units%n*(k+1)/n)*heatUnit
			if k == n-1 {
				end = e.end
			}
			all = append(all, heatLine{start, end, gap})
			start, gap = end, 0
		}
	}
	return all
}

// fill sets the cells of a sample.
func (g *heatGrid) fill(column int, rows []stats.HeatRow) {
	for i, line := range g.lines {
		var tiers [4]uint64
		var known, heat float64
		from, _ := slices.BinarySearchFunc(rows, line.start, func(r stats.HeatRow, at uint64) int {
			if r.Start+uint64(r.Pages)<<12 <= at {
				return -1
			}
			return 1
		})
		for _, r := range rows[from:] {
			if r.Start >= line.end {
				break
			}
			bytes := min(r.Start+uint64(r.Pages)<<12, line.end) - max(r.Start, line.start)
			tiers[r.Tier&3] += bytes
			if r.Heat != history.Unknown {
				known += float64(bytes)
				heat += float64(bytes) * history.Heat(r.Heat)
			}
		}
		c := &g.cells[i][column]
		for t, bytes := range tiers {
			if bytes > tiers[c.tier] || bytes > 0 && !c.used {
				c.tier, c.used = t, true
			}
		}
		if known > 0 {
			c.known, c.heat = true, heat/known
			g.hottest = max(g.hottest, c.heat)
		}
		if c.used {
			g.tiers[c.tier] = true
		}
	}
}

// mark marks the cells of a move.
func (g *heatGrid) mark(column int, m *stats.HeatMove) {
	for i, line := range g.lines {
		if m.Start < line.end && m.End > line.start {
			c := &g.cells[i][column]
			c.up = c.up || m.To < m.From
			c.down = c.down || m.To > m.From
		}
	}
}

// heatTier is the name of a tier in the history.
func heatTier(tier uint8) string {
	if int(tier) < len(tierNames) {
		return tierNames[tier]
	}
	return "swap"
}

// heatCauses are the causes of moves in words.
var heatCauses = [stats.HeatCauses]string{stats.HeatCapExceeded: "cap exceeded",
	stats.HeatRoom: "room", stats.HeatHotter: "hotter", stats.HeatColder: "colder",
	stats.HeatPagedOut: "paged out"}

// lastMoves are the newest moves, so many at most, newest first.
func (g *heatGrid) lastMoves(most int) []heatMoved {
	list := slices.Clone(g.moves[max(0, len(g.moves)-most):])
	slices.Reverse(list)
	return list
}

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
