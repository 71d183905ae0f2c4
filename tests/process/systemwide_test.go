package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/testlib"
)

// systemWide is a folder to be mounted over /etc, with the library, a program and links to one in
// it, and tieralloc.conf where text is not empty.
func systemWide(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = privileged(t)
	script := filepath.Join(dir, "script")
	conf := filepath.Join(dir, "tieralloc.conf")
	if err := errors.Join(os.WriteFile(script, []byte("#!/bin/sh\nexit 0\n"), 0o755),
		os.Symlink("/bin/true", filepath.Join(dir, "link")),
		os.Symlink("program", filepath.Join(dir, "named")),
		os.Chmod(filepath.Join(dir, "out"), 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// inSystem runs a shell's command where dir is /etc, as an ordinary user or as root, and returns
// the names in dir/out afterwards. The library is preloaded by /etc/ld.so.preload.
func inSystem(t *testing.T, dir, user string, env []string, command string) (testlib.Result,
	[]string) {
	t.Helper()
	const script = `mount --bind "$0" /etc && ulimit -c 0 &&
		exec setpriv --reuid="$1" --regid="$1" --clear-groups env $3 sh -c "$2"`
	r := testlib.Run(t, testlib.Cmd{Env: []string{"LC_ALL=C"}, Args: []string{"unshare", "-m", "sh",
		"-c", script, dir, user, command, strings.Join(env, " ")}})
	names := statsFiles(t, filepath.Join(dir, "out"))
	slices.Sort(names)
	return r, slices.Compact(names)
}

const (
	user    = "65534"
	reports = "TA_STATS_FILE=/etc/out/%e\n"
)

// TestOnly: TA_ONLY keeps the library out of all programs but those that it names, and every
// program that is started is looked at for itself.
func TestOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		only, env, command string
		want               []string
	}{
		{"true", "", "/bin/true; cat /dev/null", []string{"true"}},
		{"tru*,cat", "", "/bin/true; cat /dev/null; ls / >/dev/null", []string{"cat", "true"}},
		{"sh", "", "/bin/true; :", []string{"sh"}},
		{"link", "", "/etc/link; /bin/true", []string{"link"}},
		{"true", "", "/etc/link", []string{"link"}}, // by the file that runs
		{"script", "", "/etc/script; sh -c :", []string{"script"}},
		{"nothing", "", "/etc/link; /bin/true; /etc/script", nil},
		{"nothing", "TA_ONLY=true", "/bin/true; cat /dev/null", []string{"true"}},
		{"true", "TA_ONLY=", "/bin/true; cat /dev/null", []string{"cat", "sh", "true"}},
		// settings are others' matter
		{"true\nTA_LOG=loud\nTA_STRICT=1", "", "cat /dev/null", nil},
	} {
		dir := systemWide(t, reports+"TA_ONLY="+c.only+"\n")
		r, got := inSystem(t, dir, user, strings.Fields(c.env), c.command)
		clean(t, r)
		if !slices.Equal(got, c.want) {
			t.Errorf("TA_ONLY=%s, %s, %s: %q", c.only, c.env, c.command, got)
		}
	}
}

// TestOnlyBad: a list that cannot be read serves no program, and says so.
func TestOnlyBad(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "settings.c")
	file := filepath.Join(t.TempDir(), "report")
	r := preloaded(t, []string{"TA_ONLY=/usr/bin/x", "TA_STATS_FILE=" + file}, prog, "work")
	if r.Status != 0 || !oneLine(r.Stderr, "TA_ONLY", "/usr/bin/x", "using no program") {
		t.Errorf("%+v", r)
	}
	clean(t, preloaded(t, []string{"TA_ONLY=x", "TA_STATS_FILE=" + file}, prog, "work"))
	if _, err := os.Stat(file); err == nil {
		t.Error("there is a report")
	}
	clean(t, preloaded(t, []string{"TA_ONLY=set*", "TA_STATS_FILE=" + file}, prog, "work"))
	readReport(t, file)
}

// TestOnlyPrivileged: in a program that has more rights than its caller, TA_ONLY of the file
// counts, by the program's own file, and no other setting.
func TestOnlyPrivileged(t *testing.T) {
	t.Parallel()
	const served, refused = "tiers 1 1, threads 1\n", "tiers -1 -1, threads 1\n"
	for _, c := range []struct{ conf, env, command, want string }{
		{"TA_ONLY=program\n", "", "/etc/program", served},
		{"TA_ONLY=program\nTA_DEFAULT_HINT=cold\n" + reports, "", "/etc/named", served},
		{"TA_ONLY=named\n", "", "/etc/named", refused},
		{"TA_ONLY=other\n", "TA_ONLY=program", "/etc/program", refused},
		{"TA_DISABLE=1\n", "TA_DISABLE=0", "/etc/program", refused},
	} {
		r, got := inSystem(t, systemWide(t, c.conf), user, strings.Fields(c.env), "exec "+c.command)
		clean(t, r)
		got = slices.DeleteFunc(got, func(name string) bool { return name == "sh" })
		if r.Stdout != c.want || len(got) != 0 {
			t.Errorf("%q, %s: %q, %q", c.conf, c.command, r.Stdout, got)
		}
	}
}

// TestSystemFile: the file's settings count where the environment has none, and a bad one is the
// usual line.
func TestSystemFile(t *testing.T) {
	t.Parallel()
	dir := systemWide(t, "# reports\n"+reports+"TA_ONLY = 'true'\n")
	for _, c := range []struct {
		env  string
		want []string
	}{
		{"", []string{"true"}}, {"TA_STATS_FILE=/etc/out/mine", []string{"mine", "true"}},
		{"TA_DISABLE=1", nil}, {"TA_STATS_FILE=", nil},
	} {
		r, got := inSystem(t, dir, user, []string{c.env + " A=1"}, "/bin/true")
		clean(t, r)
		if len(c.want) == 0 {
			c.want = []string{"mine", "true"} // from before, and none newer
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.env, got)
		}
	}
	r, _ := inSystem(t, systemWide(t, "TA_ONLY=true\nTA_LOG=loud\nno setting\n"), "0", nil,
		"/bin/true")
	if r.Status != 0 || !oneLine(r.Stderr, `TA_LOG="loud"`, "expected", "using off") {
		t.Errorf("%+v", r)
	}
}

// TestSystemFileHostile: a file that others than root may have written, or that is none, is passed
// over without a word, and nobody waits for it.
func TestSystemFileHostile(t *testing.T) {
	t.Parallel()
	conf := func(dir string) string { return filepath.Join(dir, "tieralloc.conf") }
	for what, spoil := range map[string]func(dir string) error{
		"absent": func(dir string) error { return os.Remove(conf(dir)) },
		"fifo":   func(dir string) error { os.Remove(conf(dir)); return syscall.Mkfifo(conf(dir), 0o644) },
		"folder": func(dir string) error {
			os.Remove(conf(dir))
			return os.Mkdir(conf(dir),
				0o755)
		},
		"dangling link": func(dir string) error {
			os.Remove(conf(dir))
			return os.Symlink("/x",
				conf(dir))
		},
		"link to a device": func(dir string) error {
			os.Remove(conf(dir))
			return os.Symlink("/dev/zero", conf(dir))
		},
		"link to a user's file": func(dir string) error {
			other := filepath.Join(dir, "other")
			return errors.Join(os.Rename(conf(dir), other), os.Chown(other, 65534, 65534),
				os.Symlink("other", conf(dir)))
		},
		"open to all": func(dir string) error { return os.Chmod(conf(dir), 0o666) },
		"a user's":    func(dir string) error { return os.Chown(conf(dir), 65534, 0) },
		"unreadable":  func(dir string) error { return os.Chmod(conf(dir), 0) },
		"10 MB": func(dir string) error {
			return os.WriteFile(conf(dir), []byte(strings.Repeat(reports, 400000)), 0o644)
		},
		"zero bytes": func(dir string) error {
			return os.WriteFile(conf(dir), []byte(reports+"\x00\x00"), 0o644)
		},
	} {
		dir := systemWide(t, reports)
		if err := spoil(dir); err != nil {
			t.Fatal(what, err)
		}
		r, got := inSystem(t, dir, user, nil, "/bin/true")
		clean(t, r)
		if len(got) != 0 {
			t.Errorf("%s: %q", what, got)
		}
	}
	dir := systemWide(t, "")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "real"), []byte(reports), 0o644),
		os.Symlink("real", conf(dir))); err != nil {
		t.Fatal(err)
	}
	if _, got := inSystem(t, dir, user, nil, "/bin/true"); !slices.Contains(got, "true") {
		t.Errorf("by a link to root's file: %q", got)
	}
}

// TestSystemFileAbsent: without the file and without settings, looking for it is one call.
func TestSystemFileAbsent(t *testing.T) {
	t.Parallel()
	testlib.Need(t, "strace")
	out := filepath.Join(t.TempDir(), "calls")
	clean(t, testlib.Run(t, testlib.Cmd{Env: []string{"LC_ALL=C"},
		Args: []string{"strace", "-o", out,
			"-E", "LD_PRELOAD=" + testlib.Lib(t), "env", "true"}}))
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "tieralloc.conf"); n != 2 { // env's and true's
		t.Errorf("%d calls name the file", n)
	}
}

// TestRank: reports of a job's processes are told apart by rank and host.
func TestRank(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, env := range []string{"OMPI_COMM_WORLD_RANK=0", "RANK=1", "SLURM_PROCID=12", "A=1"} {
		clean(t, preloaded(t, []string{env, "TA_STATS_FILE=" + dir + "/%r.%h"}, "true"))
	}
	got := statsFiles(t, dir)
	slices.Sort(got)
	if want := []string{"0." + host, "1." + host, "12." + host, "none." + host}; !slices.Equal(got,
		want) {
		t.Errorf("%q", got)
	}
}
