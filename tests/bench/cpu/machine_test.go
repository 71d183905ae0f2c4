package main

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

func TestDescribe(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	system := fstest.MapFS{
		"proc/cpuinfo": file("processor\t: 0\nmodel name\t: AMD " +
			"EPYC 7B13: x\ncache size\t: 512 KB\nmodel name\t: another\n"),
		"proc/sys/kernel/osrelease":                  file("6.18.4-x\n"),
		"sys/kernel/mm/transparent_hugepage/enabled": file("always [madvise] never\n"),
	}
	if got, want := describe(system, 3),
		"AMD EPYC 7B13: x, 3 usable; Linux 6.18.4-x; transparent huge pages: madvise"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	want := runtime.GOARCH + " processor, 1 usable; Linux unknown; transparent huge pages: unknown"
	if got := describe(fstest.MapFS{}, 1); got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// What is told of this machine is its own.
func TestMachine(t *testing.T) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if got := machine(); !strings.Contains(got, strings.TrimSpace(string(release))) {
		t.Errorf("no %q in %q", release, got)
	}
}
