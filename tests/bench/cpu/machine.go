package main

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// machine tells what the figures depend on besides the programs: the processor, how many of them
// this process may use, the kernel, and whether the kernel gives huge pages without being asked.
func machine() string { return describe(os.DirFS("/"), runtime.NumCPU()) }

func describe(system fs.FS, processors int) string {
	return fmt.Sprintf("%s, %d usable; Linux %s; transparent huge pages: %s",
		processor(system), processors, line(system, "proc/sys/kernel/osrelease"), hugePages(system))
}

// processor is the name that the kernel gives. It gives none on arm64.
func processor(system fs.FS) string {
	text, _ := fs.ReadFile(system, "proc/cpuinfo")
	for l := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH + " processor"
}

// hugePages is the setting in force, which the file has in brackets among the others.
func hugePages(system fs.FS) string {
	_, rest, _ := strings.Cut(line(system, "sys/kernel/mm/transparent_hugepage/enabled"), "[")
	setting, _, ok := strings.Cut(rest, "]")
	if !ok {
		return "unknown"
	}
	return setting
}

// line is a file of one line.
func line(system fs.FS, name string) string {
	text, err := fs.ReadFile(system, name)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
