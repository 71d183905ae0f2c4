package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// wheel is a Python wheel that is being written: a ZIP archive whose last file lists the others.
type wheel struct {
	zip    *zip.Writer
	when   time.Time
	record strings.Builder
}

// project is the package's description in python/pyproject.toml.
type project struct{ name, version, summary, python string }

// writeWheel makes the wheel of the Python modules, with the library and the tool of a staged tree
// in the package, where tieralloc/_library.py looks for them.
func writeWheel(tree, out string, when time.Time) error {
	p, err := readProject()
	if err != nil {
		return err
	}
	tag := fmt.Sprintf("py3-none-manylinux_2_%d_x86_64", glibc)
	name := filepath.Join(out, fmt.Sprintf("%s-%s-%s.whl", p.name, p.version, tag))
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	w := &wheel{zip: zip.NewWriter(file), when: when}
	if err := w.addModules(); err != nil {
		return err
	}
	for _, source := range []string{"lib/libtieralloc.so", "bin/tierallocctl"} {
		text, err := os.ReadFile(filepath.Join(tree, source))
		if err != nil {
			return err
		}
		if err := w.add("tieralloc/"+filepath.Base(source), text, 0o755); err != nil {
			return err
		}
	}
	if err := w.addInfo(p, tag); err != nil {
		return err
	}
	if err := w.zip.Close(); err != nil {
		return err
	}
	return file.Close()
}

func readProject() (p project, err error) {
	text, err := os.ReadFile("python/pyproject.toml")
	if err != nil {
		return p, err
	}
	for key, value := range map[string]*string{"name": &p.name, "version": &p.version,
		"description": &p.summary, "requires-python": &p.python} {
		m := regexp.MustCompile(`(?m)^` + key + ` = "(.*)"$`).FindSubmatch(text)
		if m == nil {
			return p, fmt.Errorf("python/pyproject.toml has no %s", key)
		}
		*value = string(m[1])
	}
	return p, nil
}

// addModules adds all Python files below python/.
func (w *wheel) addModules() error {
	return filepath.WalkDir("python", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".py" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return w.add(strings.TrimPrefix(path, "python/"), text, 0o644)
	})
}

// addInfo adds the metadata that the installer reads.
func (w *wheel) addInfo(p project, tag string) error {
	dir := fmt.Sprintf("%s-%s.dist-info/", p.name, p.version)
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	readme, err := os.ReadFile("python/README.md")
	if err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{
		{"LICENSE", string(license)},
		{"METADATA", fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\n"+
			"License: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: %s\n"+
			"Description-Content-Type: text/markdown\n\n%s",
			p.name, p.version, p.summary, p.python, readme)},
		{"WHEEL", "Wheel-Version: 1.0\nGenerator: tieralloc\nRoot-Is-Purelib: false\nTag: " +
			tag + "\n"},
		{"entry_points.txt", "[console_scripts]\ntierallocctl = tieralloc.__main__:main\n"},
	} {
		if err := w.add(dir+f.name, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	w.record.WriteString(dir + "RECORD,,\n")
	return w.add(dir+"RECORD", []byte(w.record.String()), 0o644)
}

// add adds a file, and a line of its checksum and size to the record.
func (w *wheel) add(name string, text []byte, mode fs.FileMode) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.when}
	header.SetMode(mode)
	to, err := w.zip.CreateHeader(header)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	fmt.Fprintf(&w.record, "%s,sha256=%s,%d\n", name,
		base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
	_, err = to.Write(text)
	return err
}
