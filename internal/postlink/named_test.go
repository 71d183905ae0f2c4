package main

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestNamed: the functions of libc that only the runtime's C calls are not left to the loader. None
// of the project's own C calls them, except what starts a thread and maps memory for the runtime.
func TestNamed(t *testing.T) {
	m := edited(t)
	_, named, _, _ := deferred(t, m)
	found := map[string]bool{}
	for _, r := range named {
		name, err := m.target(r)
		if err != nil || !slices.Contains(forRuntime, name) ||
			elf.R_X86_64(elf.R_TYPE64(r.Info)) != elf.R_X86_64_GLOB_DAT {
			t.Errorf("%s at %#x is deferred (%v)", name, r.Off, err)
		}
		found[name] = true
	}
	table, count, err := m.relocations()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range table[count:] {
		if name, err := m.target(r); err != nil || slices.Contains(forRuntime, name) {
			t.Errorf("%s is left to the loader (%v)", name, err)
		}
	}
	if len(found) < len(forRuntime)*3/4 { // other versions of libc have some under other names
		t.Errorf("only %d of %d names are deferred", len(found), len(forRuntime))
	}
	files, err := filepath.Glob("../../interpose/*.c")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		switch filepath.Base(file) {
		case "boot_dormant.c", "boot_reserved.c":
			continue
		}
		object := filepath.Join(t.TempDir(), "object.o")
		if text, err := exec.Command("gcc", "-O2", "-fPIC", "-c", "-o", object,
			file).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, text)
		}
		f, err := elf.Open(object)
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := f.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		for _, s := range symbols {
			if s.Section == elf.SHN_UNDEF && slices.Contains(forRuntime, s.Name) {
				t.Errorf("%s calls %s, which may not be bound", filepath.Base(file), s.Name)
			}
		}
	}
}
