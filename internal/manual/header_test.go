package main

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestHeader: each function that the library exports by its header is in one group.
func TestHeader(t *testing.T) {
	header, err := os.ReadFile("../../interpose/tieralloc.h")
	if err != nil {
		t.Fatal(err)
	}
	exports, err := os.ReadFile("../../interpose/exports.map")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, g := range parse(string(header)) {
		got = append(got, g.functions()...)
	}
	exported := regexp.MustCompile(`\bta_\w+`).FindAllString(string(exports), -1)
	for _, m := range regexp.MustCompile(`\b(ta_\w+)\(`).FindAllStringSubmatch(string(header), -1) {
		if slices.Contains(exported, m[1]) && !slices.Contains(want, m[1]) {
			want = append(want, m[1])
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(want) < 40 || !slices.Equal(got, want) {
		t.Errorf("%q\nnot\n%q", got, want)
	}
}

func TestParse(t *testing.T) {
	groups := parse("/* Not part of it. */\nint f(void);\n\n/* ---- Some things ----\n *\n * Of " +
		"all kinds.\n" +
		" *\n *   a  b */\ntypedef struct ta_x ta_x;\n\n/* Does it.\n * Returns 0. */\n" +
		"enum {\n\tTA_A = 1\n};\nint ta_do(ta_x *x,\n\tint how);\nvoid ta_not(void);\n")
	if len(groups) != 1 || groups[0].title != "some things" ||
		groups[0].text != "Of all kinds.\n\n  a  b" || len(groups[0].declarations) != 2 {
		t.Fatalf("%+v", groups)
	}
	d := groups[0].declarations[1]
	if d.text != "Does it.\n\nReturns 0." || d.title() != "ta_do(), ta_not()" || !d.hasType() ||
		d.prototypes() != "int ta_do(ta_x *x,\n\tint how);\nvoid ta_not(void);" {
		t.Errorf("%+v", d)
	}
	if title := groups[0].declarations[0].title(); title != "ta_x" {
		t.Errorf("%q", title)
	}
}
