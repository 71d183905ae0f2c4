package config

import (
	"os"
	"regexp"
	"testing"
)

// TestDocumented: the table of docs/configuration.md has each variable, and no other.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`TA_[^|]*) \\|").FindAllSubmatch(page, -1) {
		for _, name := range regexp.MustCompile("`(TA_[A-Z_]+)`").FindAllSubmatch(row[1], -1) {
			if told[string(name[1])] {
				t.Errorf("%s stands twice", name[1])
			}
			told[string(name[1])] = true
		}
	}
	for _, v := range variables[:varCount] {
		if !told[v.name] {
			t.Errorf("%s is missing", v.name)
		}
		delete(told, v.name)
	}
	for name := range told {
		t.Errorf("%s is no variable", name)
	}
}
