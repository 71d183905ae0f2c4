package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestFilesAreCurrent compares the generated files with the list.
func TestFilesAreCurrent(t *testing.T) {
	for _, o := range outputs {
		old, err := os.ReadFile(filepath.Join(root, o.path))
		if err != nil {
			t.Fatal(err)
		}
		if o.write(string(old)) != string(old) {
			t.Errorf("%s is not what the list says: run go generate ./internal/statlist", o.path)
		}
	}
}

// TestListIsWhole: each key has a unit that shows, a meaning that is a sentence, and a name of its
// own; a peak says how exact it is.
func TestListIsWhole(t *testing.T) {
	for _, o := range objects {
		seen := map[string]bool{"": true}
		for i := range o.figures {
			x := &o.figures[i]
			if x.isHidden {
				continue
			}
			if seen[x.key] {
				t.Errorf("%s: %q is empty or twice", o.title, x.key)
			}
			seen[x.key] = true
			if !strings.HasSuffix(x.meaning, ".") {
				t.Errorf("%s: the meaning of %s is no sentence", o.title, x.key)
			}
			if (x.kind == peak) != strings.HasSuffix(x.key, "_peak") {
				t.Errorf("%s: %s is of the kind %s", o.title, x.key, kindNames[x.kind])
			}
			if x.unit == ns && !strings.HasSuffix(x.key, "_ns") {
				t.Errorf("%s: %s does not name its unit", o.title, x.key)
			}
		}
	}
}

// TestPageIsWhole: the page names each key once in the section of its object.
func TestPageIsWhole(t *testing.T) {
	sections := strings.Split(string(page()), "\n## ")[1:]
	if len(sections) != len(objects) {
		t.Fatalf("the page has %d sections for %d objects", len(sections), len(objects))
	}
	for n, o := range objects {
		for i := range o.figures {
			x := &o.figures[i]
			lead := regexp.MustCompile("(?m)(^- |[,:] |[,:]\n *|^)`" + regexp.QuoteMeta(x.key) + "`")
			if found := len(lead.FindAllString(sections[n], -1)); !x.isHidden && found != 1 {
				t.Errorf("%s has %s %d times", o.title, x.key, found)
			}
		}
	}
}

// TestPythonNamesTheFigures holds the fields of ta_cuda_stats in Python to the list.
func TestPythonNamesTheFigures(t *testing.T) {
	var want []string
	for i := range publics {
		p := &publics[i]
		if p.c != "ta_cuda_stats" {
			continue
		}
		for i := range p.lines {
			_, names, _ := strings.Cut(strings.TrimSuffix(p.code(&p.lines[i]), ";"), " ")
			want = append(want, strings.Split(names, ", ")...)
		}
	}
	found := 0
	check := func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".py" {
			return err
		}
		text, err := os.ReadFile(path)
		_, after, has := strings.Cut(string(text), `"""ta_cuda_stats`)
		if !has {
			return err
		}
		found++
		fields, _, _ := strings.Cut(after, "\n\n    @")
		var got []string
		for _, m := range regexp.MustCompile(`"([a-z_]+)"`).FindAllStringSubmatch(fields, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s has\n%v, not\n%v", path, got, want)
		}
		return nil
	}
	err := filepath.WalkDir(filepath.Join(root, "python"), check)
	if err != nil || found != 1 {
		t.Errorf("%d structures in Python, not 1: %v", found, err)
	}
}
