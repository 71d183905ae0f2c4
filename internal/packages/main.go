// Command packages makes the parts of tieralloc's packages that are not installed files.
//
//	packages -work DIR -out DIR
//
// build.sh stages the installed files in DIR/deb, DIR/rpm and DIR/tar, each below the folders that
// the system expects. This command adds the documents that Debian asks for, writes DIR/deb.json and
// DIR/rpm.json for nfpm, which packs the two trees, and makes the Python wheel.
//
// SOURCE_DATE_EPOCH is the time of all files, so that the same sources make the same packages.
// DEBFULLNAME and DEBEMAIL name the maintainer of the packages.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// glibc is the oldest glibc that the library and the tool run on: tests/verify holds the library
// to it, and checkGlibc checks what is packed.
const glibc = 34

func main() {
	work := flag.String("work", "", "the folder with the staged trees")
	out := flag.String("out", "", "the folder for the wheel")
	flag.Parse()
	if err := run(*work, *out); err != nil {
		fmt.Fprintf(os.Stderr, "packages: %v\n", err)
		os.Exit(1)
	}
}

func run(work, out string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	when := time.Unix(seconds, 0).UTC()
	for _, name := range []string{"lib/libtieralloc.so", "bin/tierallocctl"} {
		if err := checkGlibc(filepath.Join(work, "tar", name)); err != nil {
			return err
		}
	}
	if err := addDebianDocs(filepath.Join(work, "deb"), when); err != nil {
		return err
	}
	for _, packager := range []string{"deb", "rpm"} {
		if err := writeConfig(work, packager); err != nil {
			return err
		}
	}
	return writeWheel(filepath.Join(work, "tar"), out, when)
}
