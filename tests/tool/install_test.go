package tool

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// files are the names of all files below dir.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestInstall: what is installed is found by its short name, by pkg-config and by the tool, and all
// of it goes again.
func TestInstall(t *testing.T) {
	dest := t.TempDir()
	script := func(verb string) {
		t.Helper()
		args := []string{filepath.Join(testlib.Root(), "build.sh"), verb, "--destdir", dest,
			"--prefix=/opt/it"}
		if r := testlib.Run(t, testlib.Cmd{Args: args, Dir: t.TempDir(),
			Env: quiet()}); r.Status != 0 {
			t.Fatalf("%s: %+v", verb, r)
		}
	}
	script("install")
	script("install") // over itself
	at := filepath.Join(dest, "opt/it")
	want := []string{"bin/tierallocctl", "include/tieralloc.h", "include/tieralloc_compat.h",
		"lib/libtieralloc.so",
		"lib/libtieralloc.so.1", "lib/libtieralloc.so.1.0.0", "lib/pkgconfig/tieralloc.pc"}
	var pages []string
	got := slices.DeleteFunc(files(t, at), func(name string) bool {
		if page := strings.HasPrefix(name, "share/"); page {
			pages = append(pages, filepath.Base(name))
			return true
		}
		return false
	})
	for _, name := range []string{"man/man1/tierallocctl-run.1", "man/man3/ta_free.3",
		"man/man7/tieralloc.7", "bash-completion/completions/tierallocctl",
		"zsh/site-functions/_tierallocctl", "fish/vendor_completions.d/tierallocctl.fish"} {
		if _, err := os.Stat(filepath.Join(at, "share", name)); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("installed: %q, not %q", got, want)
	}
	checkPages(t, pages)
	lib := filepath.Join(at, "lib")
	path := "LD_LIBRARY_PATH=" + lib // it stands for the linker's own path

	r := testlib.Run(t, testlib.Cmd{Args: []string{filepath.Join(at, "bin/tierallocctl"), "verify",
		"sh", "-c", "true"}, Env: quiet()})
	if r.Status != 0 {
		t.Errorf("the installed tool: %+v", r)
	}
	r = testlib.Run(t, testlib.Cmd{
		Args: []string{filepath.Join(at, "bin/tierallocctl"), "verify", "true"},
		Env:  append(quiet(), path, "LD_PRELOAD=libtieralloc.so.1"),
	})
	if r.Status != 0 || strings.Contains(r.Stderr, "ignored") {
		t.Errorf("the short name: %+v", r)
	}

	program := filepath.Join(t.TempDir(), "linked")
	build := `gcc -o "$0" -include tieralloc.h testdata/nothing.c -Wl,--no-as-needed -L"$1" ` +
		`-I"$1/../include" -ltieralloc`
	if out, err := exec.Command("sh", "-c", build, program, lib).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r := testlib.Run(t, testlib.Cmd{Args: []string{program},
		Env: append(quiet(), path)}); r.Status != 0 {
		t.Errorf("a program that is linked: %+v", r)
	}
	if r := testlib.Run(t, testlib.Cmd{Args: []string{program},
		Env: append(quiet(), "LD_LIBRARY_PATH=")}); !strings.Contains(r.Stderr,
		"libtieralloc.so.1:") {
		t.Errorf("it does not ask for the soname: %+v", r)
	}
	text, err := os.ReadFile(filepath.Join(lib, "pkgconfig/tieralloc.pc"))
	if err != nil || strings.Contains(string(text), dest) {
		t.Errorf("pkg-config: %v\n%s", err, text)
	}
	says(t, string(text), "prefix=/opt/it\n", "Libs: -L${libdir} -ltieralloc\n", "Version: 1.0.0\n")

	script("uninstall")
	if left := files(t, dest); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// checkPages compares the manual pages and completions that were installed with those that a build
// has made.
func checkPages(t *testing.T, got []string) {
	t.Helper()
	var want []string
	for _, pattern := range []string{"man/man[137]/*", "completions/*/*"} {
		built, _ := filepath.Glob(filepath.Join(testlib.Root(), "build", pattern))
		for _, name := range built {
			want = append(want, filepath.Base(name))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("installed pages and completions: %q, not %q", got, want)
	}
}
