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

// recordPoints is the number of parts of the time for which the page has points.
const recordPoints = 4000

// chartPanel is a panel as the page draws it. Row 0 has times in seconds; each other one the values
// of a curve at these.
type chartPanel struct {
	recordPanel
	Rows [][]float64 `json:"rows"`
}

// chartView is a view as the page draws it.
type chartView struct {
	Name   string       `json:"name"`
	ID     int          `json:"id"`
	Panels []chartPanel `json:"panels"`
}

// html writes the recording as a page that needs nothing else.
func (r *recording) html(w io.Writer) error {
	page, err := template.New("record").Parse(recordPage)
	if err != nil {
		return err
	}
	var views []chartView
	for _, v := range r.views() {
		chart := chartView{Name: v.Name, ID: v.ID}
		for _, panel := range v.Panels {
			chart.Panels = append(chart.Panels, chartPanel{panel, rows(panel.Curves, r.end)})
		}
		views = append(views, chart)
	}
	kinds := map[string][2]string{}
	for _, k := range recordKinds {
		kinds[k.name] = [2]string{k.text, k.colour}
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

// rows brings curves to common times. They are steps, and keep what they were until a time.
func rows(curves []recordCurve, end int64) [][]float64 {
	times := map[int64]bool{0: true, end: true}
	var list [][]point
	for _, c := range curves {
		points := thinned(c.points, end, recordPoints)
		list = append(list, points)
		for _, p := range points {
			times[p.t] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(times))
	out := make([][]float64, 1+len(curves))
	for _, t := range sorted {
		out[0] = append(out[0], float64(t)/1000)
	}
	for i, points := range list {
		v := 0.0
		for _, t := range sorted {
			for len(points) > 0 && points[0].t <= t {
				v, points = float64(points[0].v), points[1:]
			}
			out[i+1] = append(out[i+1], v)
		}
	}
	return out
}
