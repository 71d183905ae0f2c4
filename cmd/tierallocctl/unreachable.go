package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// unfit explains why the library would not serve the program at path, or returns "".
func unfit(path string) string {
	if why := unreachable(path); why != "" {
		return why
	}
	if lookAt(path).malloc {
		return ownMalloc
	}
	return ""
}

const ownMalloc = "it has a malloc of its own"

// unreachable explains why a preloaded library would not be loaded into the program at path, or
// returns "".
func unreachable(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if raisesRights(path, info) {
		return "it is set-user-ID or set-group-ID, or has file capabilities: the loader ignores " +
			"LD_PRELOAD"
	}
	file, err := elf.Open(path)
	var format *elf.FormatError
	if errors.As(err, &format) {
		if real := interpreter(path); real != "" && real != path {
			return unreachable(real)
		}
		return ""
	}
	if err != nil {
		return ""
	}
	defer file.Close()
	if file.Class != elf.ELFCLASS64 {
		return "it is a 32-bit program"
	}
	loader, static := loaderOf(file)
	switch {
	case static && isLoader(file):
		return "" // started as a program, it loads another
	case static:
		return "it is statically linked: no library can be preloaded into it"
	case filepath.Base(loader) != glibcLoader:
		return "its loader is " + loader + ": the library needs glibc's"
	}
	return ""
}

const glibcLoader = "ld-linux-x86-64.so.2"

// loaderOf returns the loader that the kernel starts for a program.
func loaderOf(file *elf.File) (path string, static bool) {
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			name, _ := io.ReadAll(p.Open())
			return string(bytes.TrimRight(name, "\x00")), false
		}
	}
	return "", true
}

// isLoader reports whether a file is glibc's loader.
func isLoader(file *elf.File) bool {
	names, _ := file.DynString(elf.DT_SONAME)
	return slices.Contains(names, glibcLoader)
}

// raisesRights reports whether the program runs with more rights than this process. The loader then
// treats it as secure (AT_SECURE).
func raisesRights(path string, info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if info.Mode()&os.ModeSetuid != 0 && int(stat.Uid) != os.Getuid() ||
		info.Mode()&os.ModeSetgid != 0 && int(stat.Gid) != os.Getgid() {
		return true
	}
	_, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && os.Getuid() != 0
}

// interpreter returns the program that the first line of a script names.
func interpreter(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	line, _ := bufio.NewReader(io.LimitReader(file, 256)).ReadBytes('\n')
	words, script := bytes.CutPrefix(line, []byte("#!"))
	fields := strings.Fields(string(words))
	if !script || len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// An object is a file that the loader loads.
type object struct {
	id     fileID
	malloc bool // it defines malloc
	ours   bool // it is the library
}

// objects caches the results of lookAt.
var objects = map[fileID]object{}

// lookAt returns the object at path. If there is no file, as for the kernel's own object, the
// object defines nothing.
func lookAt(path string) object {
	info, err := os.Stat(path)
	if err != nil {
		return object{}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return object{}
	}
	id := fileID{stat.Dev, stat.Ino}
	if o, ok := objects[id]; ok {
		return o
	}
	o := object{id: id}
	if file, err := elf.Open(path); err == nil {
		symbols, _ := file.DynamicSymbols() // without any there is an error
		for _, s := range symbols {
			if s.Section != elf.SHN_UNDEF {
				o.malloc = o.malloc || s.Name == "malloc"
				o.ours = o.ours || s.Name == "ta_stats_write"
			}
		}
		file.Close()
	}
	objects[id] = o
	return o
}
