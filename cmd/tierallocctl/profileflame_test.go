package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A flameBox is a function in a picture.
type flameBox struct {
	Title string `xml:"title"`
	Text  string `xml:"text"`
	Rect  struct {
		X     float64 `xml:"x,attr"`
		Y     int     `xml:"y,attr"`
		Width float64 `xml:"width,attr"`
		Fill  string  `xml:"fill,attr"`
	} `xml:"rect"`
}

// flameBoxes parses a flame graph, and checks that it needs nothing from elsewhere.
func flameBoxes(t *testing.T, picture string) map[string]flameBox {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(picture))
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
	}
	if strings.Count(picture, "http") != 1 || regexp.MustCompile(`(?i)<script|<image|url\(`).
		MatchString(picture) {
		t.Error("the picture is not self-contained")
	}
	var all struct {
		Boxes []flameBox `xml:"g"`
	}
	if err := xml.Unmarshal([]byte(picture), &all); err != nil {
		t.Fatal(err)
	}
	boxes := map[string]flameBox{}
	for _, b := range all.Boxes {
		name, _, _ := strings.Cut(b.Title, ": ")
		boxes[name] = b
	}
	return boxes
}

func TestFlame(t *testing.T) {
	status, out, stderr := ctlProfile("--flame", "-", saveProfile(t, "p.pb", parrot()))
	if status != 0 || stderr != "" {
		t.Fatal(status, stderr)
	}
	boxes := flameBoxes(t, out)
	all, main, table := boxes["all"], boxes["main"], boxes["table"]
	if table.Title != "table: 64 MiB, 57.1% of all; itself 64 MiB" || table.Text != "table" {
		t.Errorf("%+v", table)
	}
	if main.Rect.Y != all.Rect.Y+flameHeight || main.Rect.Width != all.Rect.Width {
		t.Errorf("%+v %+v", all, main)
	}
	if got := table.Rect.Width / all.Rect.Width; math.Abs(got-0.571) > 0.002 {
		t.Errorf("the table has %v of the width", got)
	}
	if !strings.Contains(out, "prefers-color-scheme: dark") {
		t.Error("one colour scheme")
	}
}

// TestFlameDifference: what grew is red, what shrank blue, and what is gone is still there.
func TestFlameDifference(t *testing.T) {
	old, now := madeProfile(), madeProfile()
	addStack(old, "main gone", 1, 3<<20, 1, 3<<20, 0, 0, 0)
	addStack(old, "main same", 1, 8<<20, 1, 8<<20, 0, 0, 0)
	addStack(now, "main same", 1, 8<<20, 1, 8<<20, 0, 0, 0)
	addStack(now, "main new", 1, 5<<20, 1, 5<<20, 0, 0, 0)
	_, out, _ := ctlProfile("--flame", "-", "--diff", saveProfile(t, "old.pb", old),
		saveProfile(t, "now.pb", now))
	boxes := flameBoxes(t, out)
	for name, want := range map[string]struct{ fill, title string }{
		"new":  {"#ff6e6e", "new: +5.0 MiB, from 0 B to 5.0 MiB"},
		"gone": {"#6ea5ff", "gone: -3.0 MiB, from 3.0 MiB to 0 B"},
		"same": {"#e1e1e1", "same: 0 B, from 8.0 MiB to 8.0 MiB"},
	} {
		if b := boxes[name]; b.Rect.Fill != want.fill || b.Title != want.title {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// TestFlameNames: no name of a function breaks the picture.
func TestFlameNames(t *testing.T) {
	p := madeProfile()
	addStack(p, `operator<<&"' `+"a\x00\xff\x1b[31m", 1, 1, 1, math.MaxInt64, 1, 1, 1)
	addStack(p, "negative", 1, 1, 1, math.MinInt64, 1, 1, 1)
	addStack(p, "deep deep deep", 1, 1, 1, 1<<40, 1, 1, 1)
	var deep []string
	for i := range 2000 {
		deep = append(deep, "f"+strconv.Itoa(i))
	}
	addStack(p, strings.Join(deep, " "), 1, 1, 1, math.MaxInt64, 1, 1, 1)
	_, out, _ := ctlProfile("--flame", "-", saveProfile(t, "p.pb", p))
	boxes := flameBoxes(t, out)
	if boxes["f100"].Title == "" {
		t.Error("the deep stack is missing")
	}
}

func TestFit(t *testing.T) {
	var got []string
	for n := range 8 {
		got = append(got, fit("größer", n))
	}
	if want := []string{"", "", "", "", "grö…", "größ…", "größer", "größer"}; !slices.Equal(got,
		want) {
		t.Errorf("%q", got)
	}
}
