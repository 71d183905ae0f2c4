package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const libraryName = "libtieralloc.so"

// libraryDirs are the folders of installed libraries, relative to the parent of this program's
// folder: of an installation by hand, of Debian and of Fedora.
var libraryDirs = [...]string{"lib", "lib/x86_64-linux-gnu", "lib64"}

// findLibrary returns the absolute path of the library to preload: the one named, or the one beside
// this program, or the installed one.
func findLibrary(named string) (string, error) {
	path := named
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		path = filepath.Join(filepath.Dir(self), libraryName)
		if _, err := os.Stat(path); err != nil {
			for _, dir := range libraryDirs {
				if installed := filepath.Join(filepath.Dir(self), "..", dir,
					libraryName); checkLibrary(installed) == nil {
					path = installed
					break
				}
			}
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := checkLibrary(path); err != nil {
		if named == "" && errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("%s is not beside this program: name it with --library (%w)",
				libraryName, err)
		}
		return "", err
	}
	return path, nil
}

// checkLibrary reports, before the command starts, faults that the dynamic loader would only warn
// about.
func checkLibrary(path string) error {
	if strings.ContainsAny(path, ": \t\n") {
		return fmt.Errorf("%q: LD_PRELOAD cannot hold a path with blanks or colons", path)
	}
	file, err := elf.Open(path)
	var access *os.PathError
	if errors.As(err, &access) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%s is not a shared library (%w)", path, err)
	}
	defer file.Close()
	if file.Type != elf.ET_DYN || file.Class != elf.ELFCLASS64 {
		return fmt.Errorf("%s is not a 64-bit shared library", path)
	}
	return nil
}

// preload adds the library to LD_PRELOAD, before all other names.
func (e environ) preload(library string) environ {
	value := library
	if others, ok := e.get("LD_PRELOAD"); ok {
		value += ":" + others
	}
	return e.with("LD_PRELOAD", value)
}
