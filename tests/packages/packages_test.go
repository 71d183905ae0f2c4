package packages

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// made makes the packages once for all tests.
var made = sync.OnceValue(func() string {
	cmd := exec.Command(filepath.Join(testlib.Root(), "build.sh"), "package")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("./build.sh package: %v\n%s", err, out)
	}
	return ""
})

// pack makes the packages, and returns the one whose name ends so.
func pack(t *testing.T, end string) string {
	t.Helper()
	if wrong := made(); wrong != "" {
		t.Fatal(wrong)
	}
	found, _ := filepath.Glob(filepath.Join(testlib.Root(), "build/packages/*"+end))
	if len(found) != 1 {
		t.Fatalf("build/packages has %q that end with %s", found, end)
	}
	return found[0]
}

// output is what a command prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	r := testlib.Run(t, testlib.Cmd{Args: args, Timeout: 5 * time.Minute})
	if r.Status != 0 {
		t.Fatalf("%q: %+v", args, r)
	}
	return r.Stdout
}

// installed are the files that ./build.sh install places below /usr.
func installed(t *testing.T) (names []string) {
	t.Helper()
	dir := t.TempDir()
	output(t, filepath.Join(testlib.Root(), "build.sh"), "install", "--destdir", dir, "--prefix",
		"/usr")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path[len(dir):])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// expect compares the files of a package with those that install places, whose folder for libraries
// has another name there, and whose manual pages are compressed. Documents are the package's own.
func expect(t *testing.T, got []string, libdir, zsh string) {
	t.Helper()
	var want []string
	for _, name := range installed(t) {
		name = strings.Replace(name, "/usr/lib/", libdir, 1)
		name = strings.Replace(name, "/zsh/site-functions/", zsh, 1)
		if strings.HasPrefix(name, "/usr/share/man/") {
			name += ".gz"
		}
		want = append(want, name)
	}
	got = slices.DeleteFunc(got, func(name string) bool {
		return strings.HasPrefix(name, "/usr/share/doc/tieralloc") ||
			name == "/usr/share/lintian/overrides/tieralloc"
	})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the package has\n%q, and install places\n%q", got, want)
	}
}

func TestDeb(t *testing.T) {
	testlib.Need(t, "dpkg-deb")
	deb := pack(t, ".deb")
	var got []string
	for line := range strings.Lines(output(t, "dpkg-deb", "-c", deb)) {
		name, _, _ := strings.Cut(line[strings.Index(line, "./"):], " -> ")
		if name = strings.TrimSpace(name); !strings.HasSuffix(name, "/") {
			got = append(got, name[1:])
		}
	}
	expect(t, got, "/usr/lib/x86_64-linux-gnu/", "/zsh/vendor-completions/")
	dir := t.TempDir()
	output(t, "dpkg-deb", "-x", deb, dir)
	output(t, filepath.Join(dir, "usr/bin/tierallocctl"), "verify", "--", "sh", "-c", "ls /")
	if shlibs := output(t, "dpkg-deb", "-I", deb, "shlibs"); shlibs !=
		"libtieralloc 1 tieralloc (>= 1~)\n" {
		t.Errorf("shlibs: %q", shlibs)
	}
}

// TestLintian: the .deb has none of the errors that Debian's own checker knows.
func TestLintian(t *testing.T) {
	testlib.Need(t, "lintian")
	r := testlib.Run(t, testlib.Cmd{Args: []string{"lintian", "--fail-on", "error",
		"--allow-root", pack(t, ".deb")}, Timeout: 5 * time.Minute})
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	t.Log(r.Stdout)
}

func TestRpm(t *testing.T) {
	testlib.Need(t, "rpm")
	rpm := pack(t, ".rpm")
	expect(t, strings.Fields(output(t, "rpm", "-qpl", rpm)), "/usr/lib64/", "/zsh/site-functions/")
	if text := output(t, "rpm", "-qp", "--requires", rpm); !strings.Contains(text,
		"libc.so.6(GLIBC_2.34)(64bit)\n") {
		t.Errorf("it requires %q", text)
	}
}

// TestRpmInstalled: rpm installs the package into a root of its own, finds nothing wrong with it, and
// leaves nothing but its own files when it removes it. Only root may change its root.
func TestRpmInstalled(t *testing.T) {
	testlib.Need(t, "rpm")
	root := t.TempDir()
	rpm := func(args ...string) string {
		return output(t, append([]string{"rpm", "--root", root, "--nodeps"}, args...)...)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can chroot")
	}
	rpm("--install", "--noscripts", pack(t, ".rpm"))
	if text := rpm("--verify", "tieralloc"); text != "" {
		t.Errorf("it says %q", text)
	}
	output(t, filepath.Join(root, "usr/bin/tierallocctl"), "verify", "--library",
		filepath.Join(root, "usr/lib64/libtieralloc.so.1"), "--", "true")
	rpm("--erase", "--noscripts", "tieralloc")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (strings.Contains(d.Name(), "tieralloc") ||
			!d.IsDir() && !strings.Contains(path, "rpmdb") && d.Name() != ".rpm.lock") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTarball: the archive's files find each other wherever it is unpacked.
func TestTarball(t *testing.T) {
	dir := t.TempDir()
	output(t, "tar", "-xzf", pack(t, ".tar.gz"), "-C", dir, "--strip-components=1")
	output(t, filepath.Join(dir, "bin/tierallocctl"), "verify", "--", "sh", "-c", "ls /")
	pc, err := os.ReadFile(filepath.Join(dir, "lib/pkgconfig/tieralloc.pc"))
	if err != nil || !strings.HasPrefix(string(pc), "prefix=${pcfiledir}/../..\n") {
		t.Errorf("pkg-config: %q, %v", pc, err)
	}
	for _, name := range []string{"LICENSE", "INSTALL.md", "share/doc/tieralloc/README.md"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestInstallMD copies an archive that another user has unpacked by the command of INSTALL.md, as
// root: the copies belong to root, and the folders that were there keep their owner and mode.
func TestInstallMD(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	dir, to := t.TempDir(), t.TempDir()
	output(t, "tar", "-xzf", pack(t, ".tar.gz"), "-C", dir, "--strip-components=1")
	output(t, "chown", "-hR", "65534:65534", dir)
	bin := filepath.Join(to, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Chmod(bin, 0o775|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "INSTALL.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(string(text), "\n\n    umask")
	commands, _, found := strings.Cut("umask"+commands, "    ldconfig\n")
	if !found || !strings.Contains(commands, " /usr/local/") {
		t.Fatalf("INSTALL.md copies by %q", commands)
	}
	output(t, "sh", "-e", "-c", "cd "+dir+"\n"+strings.ReplaceAll(commands, "/usr/local/", to))
	if wrong := output(t, "find", to, "!", "-user", "0", "-o", "-type", "f", "!", "-perm",
		"-444"); wrong != "" {
		t.Errorf("not root's, or not readable by all:\n%s", wrong)
	}
	if mode := output(t, "stat", "-c", "%a", bin); mode != "2775\n" {
		t.Errorf("bin has the mode %s", mode)
	}
	output(t, filepath.Join(bin, "tierallocctl"), "verify", "--", "sh", "-c", "ls /")
	if _, err := os.Readlink(filepath.Join(to, "lib/libtieralloc.so")); err != nil {
		t.Error(err)
	}
}

// TestWheel: the wheel lists what it holds, runs on the glibc that its name tells, and its
// "python -m tieralloc run" preloads its library.
func TestWheel(t *testing.T) {
	testlib.Need(t, "python3")
	name := pack(t, "-py3-none-manylinux_2_34_x86_64.whl")
	files := unpack(t, name)
	dir := t.TempDir()
	info := "tieralloc-1.0.0.dist-info/"
	rows, err := csv.NewReader(strings.NewReader(string(files[info+"RECORD"]))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range rows {
		listed = append(listed, row[0])
		text := files[row[0]]
		sum := sha256.Sum256(text)
		want := []string{row[0], "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]),
			fmt.Sprint(len(text))}
		if row[0] == info+"RECORD" {
			want = []string{row[0], "", ""}
		}
		if !slices.Equal(row, want) {
			t.Errorf("RECORD has %q, not %q", row, want)
		}
	}
	slices.Sort(listed)
	if holds := slices.Sorted(maps.Keys(files)); !slices.Equal(listed, holds) {
		t.Errorf("RECORD lists %q, and the wheel holds %q", listed, holds)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"libtieralloc.so", "tierallocctl"} {
		if minor, from := testlib.Glibc(t, filepath.Join(dir, "tieralloc", name)); minor > 34 {
			t.Errorf("%s needs glibc 2.%d, for %s", name, minor, from)
		}
	}
	checkModules(t, files)
	r := testlib.Run(t, testlib.Cmd{Args: []string{"python3", "-m", "tieralloc", "run", "--quiet",
		"--default-hint", "cold", "--", "python3", "-c",
		"import tieralloc_shim as t, os\nt.enable(); print(t.hello(), os.environ['LD_PRELOAD'])"},
		Env: []string{"PYTHONPATH=" + dir, "PYTHONDONTWRITEBYTECODE=1", "LD_PRELOAD="}})
	if r.Status != 0 || !strings.Contains(r.Stdout, "default hint cold") ||
		!strings.Contains(r.Stdout, filepath.Join(dir, "tieralloc/libtieralloc.so")) {
		t.Errorf("python -m tieralloc run: %+v", r)
	}
}

// unpack reads all files of a ZIP archive.
func unpack(t *testing.T, name string) map[string][]byte {
	t.Helper()
	archive, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	files := map[string][]byte{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if program := f.Name == "tieralloc/tierallocctl"; program && f.Mode()&0o111 == 0 {
			t.Errorf("%s may not be run", f.Name)
		}
	}
	return files
}

// checkModules: the wheel has every Python file of the tree, as it is there.
func checkModules(t *testing.T, files map[string][]byte) {
	t.Helper()
	python := filepath.Join(testlib.Root(), "python")
	err := filepath.WalkDir(python, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".py" {
			return err
		}
		text, err := os.ReadFile(path)
		if name := strings.TrimPrefix(path, python+"/"); string(files[name]) != string(text) {
			t.Errorf("the wheel's %s is not the tree's", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
