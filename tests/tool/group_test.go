package tool

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/internal/group"
	"tieralloc/internal/testlib"
)

// shownGroup is what group --json shows.
type shownGroup struct {
	Path     string `json:"path"`
	Name     string `json:"name"`
	Accounts []struct {
		Name string `json:"name"`
		Used int64  `json:"bytes_used"`
		Soft int64  `json:"capacity_soft"`
		Hard int64  `json:"capacity_hard"`
	} `json:"accounts"`
	Members []struct {
		Pid     int    `json:"pid"`
		Program string `json:"program"`
		Ended   bool   `json:"ended"`
		Shares  []struct {
			Used    int64 `json:"bytes_used"`
			Granted int64 `json:"bytes_granted"`
			Kept    int64 `json:"bytes_kept"`
		} `json:"shares"`
	} `json:"members"`
}

// named is a group with a name of the test's own, which is removed at its end.
func named(t *testing.T) string {
	name := fmt.Sprintf("%s.%d", t.Name(), os.Getpid())
	t.Cleanup(func() {
		os.Remove(fmt.Sprintf("/dev/shm/tieralloc-group.%d.%s", os.Geteuid(), name))
	})
	return name
}

func showGroup(t *testing.T, name string) (g shownGroup) {
	t.Helper()
	r := ctl(t, nil, "group", "--json", name)
	if err := json.Unmarshal([]byte(r.Stdout), &g); err != nil || r.Status != 0 {
		t.Fatalf("%+v: %v", r, err)
	}
	return g
}

// TestGroup: the tool shows who is in a group, with what, until the last has ended.
func TestGroup(t *testing.T) {
	testlib.Need(t, "perl")
	name := named(t)
	env := preloaded(t, "TA_GROUP="+name, "TA_NORMAL_HARD=512M", "TA_NORMAL_SOFT=256M",
		"TA_GROUP_MIN=8M")
	a, b := start(t, env, "perl", "-e", atRest), start(t, env, "perl", "-e", atRest)
	g := showGroup(t, name)
	if g.Name != name || len(g.Members) != 2 || len(g.Accounts) == 0 {
		t.Fatalf("%+v", g)
	}
	normal := 0
	for normal < len(g.Accounts)-1 && g.Accounts[normal].Hard == 0 {
		normal++
	}
	if n := g.Accounts[normal]; n.Hard != 512<<20 || n.Soft != 256<<20 || n.Used < 60_000_000 {
		t.Errorf("%+v", n)
	}
	for i, pid := range []int{a.Process.Pid, b.Process.Pid} {
		m := g.Members[i]
		if m.Pid != pid || m.Program != "perl" || m.Ended || m.Shares[normal].Kept != 8<<20 ||
			m.Shares[normal].Used < 30_000_000 || m.Shares[normal].Granted < m.Shares[normal].Used {
			t.Errorf("%+v", m)
		}
	}
	text := ctl(t, nil, "group", name).Stdout
	says(t, text, fmt.Sprint(a.Process.Pid), "perl", "runs", "hard cap", "512 MiB")
	says(t, ctl(t, nil, "group").Stdout, name, "512 MiB")
	export := ctl(t, nil, "export").Stdout
	says(t, export, `tieralloc_group_members{group="`+name+`",`, `tieralloc_group_hard_cap_bytes{`,
		`tieralloc_group_used_bytes{`)
	totals := []uint64{7e6, 8e6, 9e6} // refused, waits, taken of the account of NORMAL
	file, err := os.OpenFile(g.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	words, _ := binary.Append(nil, binary.NativeEndian, totals)
	if _, err := file.WriteAt(words, int64(unsafe.Offsetof(group.Page{}.Totals)+
		unsafe.Sizeof(group.Totals{}))); err != nil {
		t.Fatal(err)
	}
	export = ctl(t, nil, "export").Stdout
	for i, kind := range []string{"refused", "waits", "taken_bytes"} {
		says(t, export, fmt.Sprintf("tieralloc_group_%s_total{account=\"NORMAL\",group=%q,user=", kind,
			name), fmt.Sprintf("} %de+06\n", totals[i]/1e6))
	}
	if r := ctl(t, nil, "group", name, "--remove"); r.Status != 1 ||
		!strings.Contains(r.Stderr, "has members") {
		t.Errorf("%+v", r)
	}
	for _, c := range []*os.Process{a.Process, b.Process} {
		c.Kill()
		c.Wait()
	}
	for _, m := range showGroup(t, name).Members {
		if !m.Ended {
			t.Errorf("%+v", m)
		}
	}
	if r := ctl(t, nil, "group", name, "--remove"); r.Status != 0 {
		t.Errorf("%+v", r)
	}
	if r := ctl(t, nil, "group", name); r.Status != 1 ||
		!strings.Contains(r.Stderr, "no process has joined it") {
		t.Errorf("%+v", r)
	}
}

// TestOwnGroup: with --own-group a command and its children have one cap, and no file stays.
func TestOwnGroup(t *testing.T) {
	testlib.Need(t, "perl")
	const allocate = `$| = 1; my $x; vec($x, 40_000_000, 8) = 1; print "got\n"; if (@ARGV) ` +
		`{ print(system($^X, "-e", $ENV{SCRIPT}) ? "child short\n" : "child got\n") }`
	for flag, want := range map[string]string{"--own-group": "got\nchild short\n",
		"--quiet": "got\ngot\nchild got\n"} {
		r := run(t, []string{"SCRIPT=" + allocate}, flag, "-q", "--normal-hard", "64M", "--slow-hard",
			"1M", "--fast-hard", "1M", "--", "perl", "-e", allocate, "1")
		if r.Stdout != want || r.Status != 0 {
			t.Errorf("%s: %+v", flag, r)
		}
	}
	left, _ := filepath.Glob(fmt.Sprintf("/dev/shm/tieralloc-group.%d.run-*", os.Geteuid()))
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 &&
			bytes.Contains(readFile(path), []byte("perl\x00")) {
			t.Errorf("%s is left", path)
		}
	}
}

// TestOwnGroupLeft: the group of a command whose children live longer than it is removed once they
// have ended, at the next --own-group, and not before.
func TestOwnGroupLeft(t *testing.T) {
	testlib.Need(t, "perl")
	// The child is a member when fork returns.
	const parent = `pipe(R, W); if (my $child = fork) { <R>; print "$ENV{TA_GROUP} $child"; exit }
		syswrite(W, "\n"); sleep 600`
	out := filepath.Join(t.TempDir(), "out")
	if r := run(t, nil, "--own-group", "-q", "--normal-hard", "64M", "--", "sh", "-c",
		`exec perl -e "$0" > "$1" 2>&1`, parent, out); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	var name string
	var pid int
	if _, err := fmt.Sscan(string(readFile(out)), &name, &pid); err != nil {
		t.Fatalf("%v: %s", err, readFile(out))
	}
	defer func() { syscall.Kill(pid, syscall.SIGKILL) }()
	path := fmt.Sprintf("/dev/shm/tieralloc-group.%d.%s", os.Geteuid(), name)
	defer os.Remove(path)
	another := func() bool {
		run(t, nil, "--own-group", "-q", "--normal-hard", "64M", "--", "true")
		_, err := os.Stat(path)
		return err != nil
	}
	if another() {
		t.Error("a group with a member was removed")
	}
	syscall.Kill(pid, syscall.SIGKILL)
	self, _ := os.FindProcess(os.Getpid())
	testlib.Wait(t, "the child's end", self, func() bool {
		for _, m := range showGroup(t, name).Members {
			if !m.Ended {
				return false
			}
		}
		return true
	})
	if !another() {
		t.Error("a group without members stays")
	}
}

func readFile(path string) []byte {
	text, _ := os.ReadFile(path)
	return text
}

// TestGroupDamaged: whatever a group's file is, the tool says so and goes on.
func TestGroupDamaged(t *testing.T) {
	dir := t.TempDir()
	refused := func(path, says string) {
		t.Helper()
		if r := ctl(t, nil, "group", path); r.Status != 1 || !strings.Contains(r.Stderr, says) ||
			r.Stdout != "" {
			t.Errorf("%s: %+v", filepath.Base(path), r)
		}
	}
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	refused(write("short", []byte("x")), "not the file of a group")
	refused(write("zero", make([]byte, group.Size)), "not the file of a group")
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	os.Symlink(write("target", make([]byte, group.Size)), link)
	refused(link, "too many levels")
	syscall.Mkfifo(fifo, 0o600)
	refused(fifo, "not the file of a group")
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 50 {
		page := make([]byte, group.Size)
		for k := range page {
			page[k] = byte(rng.Uint32())
		}
		copy(page, "tagroup\x00\x01\x00\x00\x00\x00\x00\x00\x00")
		path := write(fmt.Sprint("random", i), page)
		if r := ctl(t, nil, "group", path); r.Status != 0 || strings.ContainsAny(r.Stdout, "\x1b\a\r") {
			t.Errorf("%d: status %d, %s", i, r.Status, r.Stderr)
		}
	}
}
