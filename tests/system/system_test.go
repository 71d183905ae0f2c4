package system

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// root is a Debian system in a folder.
type root struct {
	t   *testing.T
	dir string
}

// source is a line of apt's sources on this machine: a root is made of the same.
type source struct{ uri, suite, components string }

func sources(t *testing.T) []source {
	t.Helper()
	out, err := exec.Command("apt-get", "indextargets", "--format",
		"$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages").Output()
	if err != nil {
		t.Skipf("apt-get indextargets: %v", err)
	}
	var all []source
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 4 && f[0] == "Debian" && f[3] == "main" {
			all = append(all, source{f[1], f[2], f[3]})
		}
	}
	if len(all) == 0 {
		t.Skip("apt knows no source of Debian's packages: apt-get update may help")
	}
	return all
}

// newRoot unpacks a minimal system with packages of the first of the sources.
func newRoot(t *testing.T, all []source, packages ...string) *root {
	t.Helper()
	dir := t.TempDir()
	r := &root{t, filepath.Join(dir, "root")}
	args := []string{"debootstrap", "--variant=minbase"}
	if len(packages) > 0 {
		args = append(args, "--include="+strings.Join(packages, ","))
	}
	args = append(args, all[0].suite, r.dir, all[0].uri)
	res := testlib.Run(t, testlib.Cmd{Args: args, Timeout: 10 * time.Minute})
	if res.Status != 0 {
		t.Skipf("a system cannot be made here: %s", last(res.Stdout+res.Stderr))
	}
	var list strings.Builder
	for _, s := range all {
		list.WriteString("deb " + s.uri + " " + s.suite + " " + s.components + "\n")
	}
	r.write("etc/apt/sources.list", list.String(), 0o644)
	r.write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755) // packages start no servers
	if text, err := os.ReadFile("/etc/resolv.conf"); err == nil {
		r.write("etc/resolv.conf", string(text), 0o644)
	}
	r.write("etc/hostname", "root\n", 0o644)
	r.write("etc/hosts", "127.0.0.1 localhost root\n", 0o644)
	if err := os.Mkdir(filepath.Join(r.dir, "tests"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"install.sh", "checks.sh", "bare.sh", "packages.sh",
		"namespaces.sh"} {
		r.write("tests/"+name, read(t, filepath.Join("testdata", name)), 0o755)
	}
	return r
}

func (r *root) write(name, text string, mode os.FileMode) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// preload gives the library to every program of the root.
func (r *root) preload() {
	r.t.Helper()
	r.write("usr/lib/libtieralloc.so", read(r.t, testlib.Lib(r.t)), 0o755)
	r.write("etc/ld.so.preload", "/usr/lib/libtieralloc.so\n", 0o644)
}

// run runs a script of testdata as the first process of the root's own namespaces, and returns what
// it printed.
func (r *root) run(script string, namespaces ...string) string {
	r.t.Helper()
	args := append([]string{"unshare", "-m", "-p", "-f", "-i", "-u", "--kill-child"}, namespaces...)
	args = append(args, "sh", filepath.Join("testdata", "enter.sh"), r.dir, "/tests/"+script)
	res := testlib.Run(r.t, testlib.Cmd{Args: args, Timeout: 10 * time.Minute})
	if res.Status != 0 {
		r.t.Errorf("%s ended with %d\n%s\n%s", script, res.Status, last(res.Stdout+res.Stderr),
			last(read(r.t, filepath.Join(r.dir, "tests/install.log"))))
	}
	return res.Stdout + "\nstandard error:\n" + res.Stderr
}

// asked skips a test that nobody asked for, or that this machine cannot run.
func asked(t *testing.T) {
	t.Helper()
	if os.Getenv("TA_TEST_SYSTEM") == "" {
		t.Skip("it downloads and installs Debian: TA_TEST_SYSTEM=1 asks for it")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can make a Debian root")
	}
	for _, name := range []string{"debootstrap", "unshare", "apt-get"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s", name)
		}
	}
}

// TestRoot: the root of the other tests is as good as a machine's for the namespaces of what runs in
// it.
func TestRoot(t *testing.T) {
	asked(t)
	newRoot(t, sources(t)).run("namespaces.sh")
}

// TestSystem installs and uses a system twice, without the library and with it from
// the first package on. It takes many minutes and the network, so it has to be asked for.
func TestSystem(t *testing.T) {
	asked(t)
	var printed [2]string
	for i, preloaded := range []bool{false, true} {
		r := newRoot(t, sources(t))
		daemons := "no"
		if preloaded {
			r.preload()
			daemons = "yes"
		}
		printed[i] = r.run("install.sh") + r.run("checks.sh", "-n")
		var want strings.Builder
		for _, name := range []string{"cron", "dbus", "sshd", "mariadbd", "apache2"} {
			want.WriteString(name + " " + daemons + "\n")
		}
		if got := read(t, filepath.Join(r.dir, "tests/mapped")); got != want.String() {
			t.Errorf("preloaded %v: which daemons have the library: %q, want %q", preloaded, got,
				want.String())
		}
		if n := strings.Count(printed[i], "\ninstalled "); n < 200 {
			t.Errorf("preloaded %v: only %d packages are installed", preloaded, n)
		}
	}
	t.Logf("without the library:\n%s", printed[0])
	differences(t, printed[0], printed[1])
}

// differences reports the lines that only one of two texts has.
func differences(t *testing.T, plain, preloaded string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"plain": plain, "preloaded": preloaded} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("diff", "-u", "plain", "preloaded")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("what was printed differs:\n%s", out)
	}
}

func last(s string) string { return s[max(0, len(s)-3000):] }
