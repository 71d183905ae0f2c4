package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tieralloc/internal/version"
)

//go:embed copyright
var copyright []byte

//go:embed lintian-overrides
var overrides []byte

// debianRevision is the revision of the Debian package within the version.
const debianRevision = "1"

// maintainer returns the maintainer of the packages, from the variables that Debian's own tools
// use.
func maintainer() string {
	return fmt.Sprintf("%s <%s>", cmp.Or(os.Getenv("DEBFULLNAME"), "The tieralloc authors"),
		cmp.Or(os.Getenv("DEBEMAIL"), "maintainers@tieralloc.invalid"))
}

// addDebianDocs adds the files that Debian's policy requires in every package: the copyright, and
// two changelogs, the project's and the package's.
func addDebianDocs(tree string, when time.Time) error {
	changes, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	entry := fmt.Sprintf("tieralloc (%s-%s) unstable; urgency=medium\n\n"+
		"  * This version: changelog.gz lists what changed.\n\n -- %s  %s\n",
		version.Number, debianRevision, maintainer(), when.Format(time.RFC1123Z))
	for name, text := range map[string][]byte{
		"doc/tieralloc/copyright":           copyright,
		"doc/tieralloc/changelog.gz":        compressed(changes),
		"doc/tieralloc/changelog.Debian.gz": compressed([]byte(entry)),
		"lintian/overrides/tieralloc":       overrides,
	} {
		path := filepath.Join(tree, "usr/share", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		if err := os.Chtimes(path, when, when); err != nil {
			return err
		}
	}
	return nil
}

// compressed returns text compressed as by gzip -9n, without a name and a time.
func compressed(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // an error is of the level alone
	w.Write(text)
	w.Close()
	return b.Bytes()
}
