package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestDescribeSites: the first ten sites of the fixture have a row each.
func TestDescribeSites(t *testing.T) {
	var out bytes.Buffer
	r := goodReport(t)
	describe(&out, r)
	text := squeeze(out.String())
	for _, words := range []string{
		"\n12 GiB 50,001 49,001 1.0 MiB 2.0 MiB 4.0 KiB 1.5ms cold slow libc.so.6+0x9d1a0 < " +
			"trainer+0x11f7 < trainer+0x12b4 < 0x7f0000001000 < …\n",
		"\n11 GiB 50,002 0 2.0 MiB 3.0 MiB 4.0 KiB - cold slow libc.so.6+0x9d1a1 < " +
			"trainer+0x11f7\n",
		"\n10 GiB 50,003 49,003 3.0 MiB 4.0 MiB 4.0 KiB 1.5ms cold slow -\n",
		"\n3.0 GiB 50,010 ", "and 2 stacks, which --json shows",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is missing in\n%s", words, text)
		}
	}
	if strings.Contains(text, "\n2.0 GiB 50,011") {
		t.Errorf("an eleventh site is shown:\n%s", text)
	}
	r.Sites = nil
	out.Reset()
	describe(&out, r)
	if strings.Contains(out.String(), "stacks") {
		t.Errorf("sites of a report without any:\n%s", out.String())
	}
}

// TestDamagedSites: a list with nothing in it is no report, and what is missing in a site is shown
// as nothing.
func TestDamagedSites(t *testing.T) {
	good, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	with := func(sites string) []byte {
		return []byte(strings.Replace(string(good), `"sites": [`, `"sites": `+sites+`, "rest": [`,
			1))
	}
	for _, sites := range []string{"[null]", `[{"stack": [3]}]`, "3"} {
		if _, err := decodeReport(with(sites)); err == nil {
			t.Errorf("%s is accepted", sites)
		}
	}
	r, err := decodeReport(with("[{}]"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	describeSites(&out, r)
	if !strings.Contains(squeeze(out.String()), "\n0 B 0 0 0 B 0 B 0 B - ") {
		t.Errorf("%s", out.String())
	}
}
