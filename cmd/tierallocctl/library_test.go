package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFindLibrary(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	blank := filepath.Join(dir, "with blank.so")
	if err := os.Symlink("/lib64/ld-linux-x86-64.so.2", blank); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{text, blank, dir, filepath.Join(dir, "none.so"), ""} {
		if path, err := findLibrary(bad); err == nil {
			t.Errorf("%q: %s is taken", bad, path)
		}
	}
	good := filepath.Join(dir, "good.so")
	if err := os.Rename(blank, good); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if path, err := findLibrary("good.so"); err != nil || path != good {
		t.Errorf("%s, %v", path, err)
	}
}

func TestPreload(t *testing.T) {
	if v, _ := (environ{}).preload("/l.so").get("LD_PRELOAD"); v != "/l.so" {
		t.Errorf("%q", v)
	}
	v, _ := (environ{"LD_PRELOAD=/a.so:/b.so"}).preload("/l.so").get("LD_PRELOAD")
	if v != "/l.so:/a.so:/b.so" {
		t.Errorf("%q", v)
	}
}
