package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFigures(t *testing.T) {
	five := []float64{9, 1, 5, 3, 7}
	if median(five) != 5 || quantile(five, 0.25) != 3 || quantile(five, 0.75) != 7 || five[0] != 9 {
		t.Error(median(five), quantile(five, 0.25), quantile(five, 0.75), five)
	}
	three := []float64{8, 1, 2}
	if median(three) != 2 || quantile(three, 0.25) != 1.5 || quantile(three, 0.75) != 5 ||
		median([]float64{1, 2}) != 1.5 || quantile([]float64{3}, 0.75) != 3 {
		t.Error(median(three), quantile(three, 0.25), quantile(three, 0.75))
	}
	if g := geometric([]float64{0.5, 2, 8}); math.Abs(g-2) > 1e-12 {
		t.Error(g)
	}
	if !math.IsNaN(geometric(nil)) {
		t.Error("there is a mean of nothing")
	}
}

// of makes samples of milliseconds and peaks in MiB.
func of(steady float64, pairs ...float64) []sample {
	var out []sample
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, sample{time: time.Duration(pairs[i] * 1e6), cpu: time.Millisecond,
			peak: pairs[i+1] * 1024, steady: steady * 1024})
	}
	return out
}

// example is glibc, this library, and two others, of which one fails once.
func example() *results {
	return &results{
		all:    []contender{{name: "glibc"}, {name: "tieralloc"}, {name: "fast"}, {name: "a<b"}},
		rounds: 3, scale: 1000, thread: 2,
		rows: []row{
			{"one", [][]sample{of(10, 100, 10, 200, 10, 100, 10), of(20, 50, 10, 100, 11, 54, 10),
				of(10, 25, 10, 60, 9, 25, 10), of(10, 400, 100, 800, 100, 500, 100)},
				make([]string, 4)},
			{"two", [][]sample{of(0, 10, 1, 10, 1, 10, 1), of(0, 20, 1, 20, 1, 20, 1),
				of(0, 20, 1, 20, 1, 20, 1), nil}, []string{"", "", "", "it hung"}},
		},
		absent: []string{"three: there is no three"},
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	r := example()
	r.print(&out)
	flat := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		machine() + " 3 rounds, interleaved; 2 threads. x:",
		"one 100 0.50 (0.50–0.52) 0.25 (0.25–0.28) 4.00 (4.00–4.50)",
		"two 10 2.00 (2.00–2.00) 2.00 (2.00–2.00) –",
		"geometric mean, time 1.000 0.707 4.000",
		"~: equal within the spread",
		"one 10 ~1.00 (1.00–1.05) ~1.00 (0.95–1.00) 10.00 (10.00–10.00)",
		"geometric mean, processor time 1.000 1.000 1.000 half the spread, median 0.005 0.006 " +
			"0.250",
		"geometric mean, steady memory 2.000 1.000 1.000",
		"not run: three: there is no three",
		"failed: two under a<b: it hung",
		"one, time: 2.00 times fast",
		"two, time: 2.00 times glibc",
		"one, steady memory: 2.00 times glibc, 2.00 times fast, 2.00 times a<b",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, wrong := range []string{"~0.50", "~2.00", "~4.00", "one, time: 2.00 times fast,",
		"one, peak", "two, peak", "NaN", "two, steady"} {
		if strings.Contains(flat, wrong) {
			t.Errorf("%q in\n%s", wrong, out.String())
		}
	}
	if err := r.verdict(); err != nil {
		t.Error(err)
	}
}

// Equal is what has 1 in the middle half of its rounds, and nothing after one round.
func TestEqual(t *testing.T) {
	for _, c := range []struct {
		ratios []float64
		equal  bool
	}{{[]float64{0.95, 1.2, 1.1}, false}, {[]float64{0.8, 1.2, 1.1}, true}, {[]float64{1, 1}, true},
		{[]float64{0.99, 0.98, 0.97}, false},
		{[]float64{0.5, 1.02, 1.03, 1.04, 1.05}, false}, {[]float64{1}, false}, {nil, false}} {
		if equal(c.ratios) != c.equal {
			t.Errorf("%v: %v", c.ratios, !c.equal)
		}
	}
}

// A lead that may be chance says so.
func TestLeadsWithinSpread(t *testing.T) {
	r := &results{all: []contender{{name: "glibc"}, {name: "tieralloc"}}, rounds: 3, scale: 1000,
		rows: []row{{"w", [][]sample{of(0, 100, 1, 100, 1, 100, 1), of(0, 80, 2, 106, 2, 120, 2)},
			make([]string, 2)}}}
	var out strings.Builder
	r.print(&out)
	for _, want := range []string{"w, time: ~1.06 times glibc",
		"w, peak memory: 2.00 times glibc"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// Five percent is where naming begins, and nobody ahead is told as well.
func TestLeads(t *testing.T) {
	r := &results{all: []contender{{name: "glibc"}, {name: "tieralloc"}}, rounds: 1, scale: 250}
	for _, c := range []struct {
		ms    float64
		leads int
	}{{104.9, 0}, {105.1, 1}, {50, 0}} {
		r.rows = []row{{"w", [][]sample{of(0, 100, 1), of(0, c.ms, 1)}, make([]string, 2)}}
		if l := r.leads(); len(l) != c.leads {
			t.Errorf("%v ms: %+v", c.ms, l)
		}
	}
	var out strings.Builder
	r.print(&out)
	if !strings.Contains(out.String(), "Nowhere is another ahead") ||
		!strings.Contains(out.String(), "25% of the work") {
		t.Error(out.String())
	}
}

// The chart is XML, has a mark for each figure, and stays within its frame.
func TestChart(t *testing.T) {
	r := example()
	path := filepath.Join(t.TempDir(), "chart.svg")
	if err := r.draw(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	titles := map[string]int{}
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			titles[string(text)]++
		}
	}
	// The last has no more than its one figure, which is its mean as well.
	for title, n := range map[string]int{"tieralloc, time: 0.50": 1, "tieralloc, time: 1.00": 1,
		"fast, peak memory: 1.00": 3, "a<b, time: 4.00": 2,
		"a<b, peak memory: 10.00": 2, "10.0": 2, "one": 1, "two": 1, "mean": 1} {
		if titles[title] != n {
			t.Errorf("%q: %d, not %d", title, titles[title], n)
		}
	}
	c := r.chart()
	for _, line := range c.Rows {
		for _, m := range line.Marks {
			if m.X < chartLeft || m.X > float64(c.Width) || m.Y < chartTop ||
				m.Y > float64(c.Bottom) {
				t.Errorf("%s: %+v", line.Name, m)
			}
		}
		if last := line.Marks[len(line.Marks)-1]; !last.Ours {
			t.Errorf("%s: %s is on top", line.Name, last.Title)
		}
	}
	if across(1) != 0.5 || across(4) != 1 || across(0.25) != 0 || across(100) != 1 {
		t.Error(across(1), across(4), across(0.25), across(100))
	}
}
