package main

import (
	_ "embed" // the page's parts
	"html/template"
	"io"
	"maps"
	"slices"
)

// The page is made of these, and of uPlot, which draws the curves.
var (
	//go:embed record.html
	recordPage string
	//go:embed record.js
	recordScript string
	//go:embed uplot/uPlot.iife.min.js
	uplotScript string
	//go:embed uplot/uPlot.min.css
	uplotStyle string
	//go:embed uplot/LICENSE
	uplotLicence string
)

// recordParts is the number of parts that the time of long curves has in the page. A part shows the
// largest value and the last.
const recordParts = 2000

// html writes the recording as a page that needs nothing else.
func (r *recording) html(w io.Writer) error {
	page, err := template.New("record").Parse(recordPage)
	if err != nil {
		return err
	}
	views := r.views()
	for _, v := range views {
		for i := range v.Panels {
			v.Panels[i].Rows = rows(v.Panels[i].Curves, r.end)
		}
	}
	kinds := map[string]recordKind{}
	for _, k := range recordKinds {
		k.Line = k.isLine(r)
		kinds[k.name] = k
	}
	return page.Execute(w, map[string]any{
		"Title": r.title(), "Cut": !r.whole,
		"Style": template.CSS(uplotStyle), "Chart": template.JS(uplotScript),
		"Script": template.JS(recordScript), "Licence": template.HTML("<!--\n" + uplotLicence +
			"-->"),
		"Data": map[string]any{"views": views, "events": r.events(), "kinds": kinds,
			"end": float64(r.end) / 1000, "cap": recordCapHue},
	})
}

// rows brings curves to common times. They are steps, and keep what they were until a time. Row 0
// has the times in seconds; each other one the values of a curve at these.
func rows(curves []recordCurve, end int64) [][]float64 {
	all := map[int64]bool{0: true, end: true}
	for _, c := range curves {
		for _, p := range c.points {
			all[p.t] = true
		}
	}
	times := slices.Sorted(maps.Keys(all))
	if len(times) > 2*recordParts {
		times = times[:0]
		for i := range int64(2 * recordParts) {
			times = append(times, end*(i+1)/(2*recordParts))
		}
	}
	out := [][]float64{make([]float64, len(times))}
	for i, t := range times {
		out[0][i] = float64(t) / 1000
	}
	for _, c := range curves {
		out = append(out, valuesAt(c.points, times))
	}
	return out
}

// valuesAt are the values of a curve at each of some times. Where more than one point lies between
// two times, the largest value counts; the last one comes at the next time.
func valuesAt(points []point, times []int64) []float64 {
	values := make([]float64, len(times))
	var last uint64
	for i, t := range times {
		top, n := uint64(0), 0
		for ; n < len(points) && points[n].t <= t; n++ {
			top = max(top, points[n].v)
			last = points[n].v
		}
		if points = points[n:]; n == 0 {
			top = last
		}
		values[i] = float64(top)
	}
	return values
}
