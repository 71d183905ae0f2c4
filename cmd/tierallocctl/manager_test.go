package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestDescribeManagers: each instance of the fixture's manager has its row.
func TestDescribeManagers(t *testing.T) {
	var out bytes.Buffer
	r := goodReport(t)
	describe(&out, r)
	text := squeeze(out.String())
	for _, words := range []string{
		"memory manager \"solver\" of device 0, active: 8.0 GiB for 3 instances\n",
		"Inputs 140212 default manual 25.0% 2.0 GiB 1.0 GiB 1.5 GiB 91,001 92,001 93,001 94,001\n",
		r.Managers[0].Instances[1].Name + " 140213 late automatic 37.5% 3.0 GiB 0 B 0 B 0 0 0 0\n",
		"and 1 instance more, which the report does not list",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is missing in\n%s", words, text)
		}
	}
}

// TestDamagedManagers: a list with nothing in it is no report.
func TestDamagedManagers(t *testing.T) {
	good, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	for _, managers := range []string{"[null]", `[{"instances": [null]}]`, `[{"instances": 3}]`} {
		text := strings.Replace(string(good), `"managers": [`,
			`"managers": `+managers+`, "rest": [`, 1)
		if _, err := decodeReport([]byte(text)); err == nil {
			t.Errorf("%s is accepted", managers)
		}
	}
}
