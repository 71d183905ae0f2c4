package tiers_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// capped is a group of the test's own whose memory is 64 MiB in all.
func capped(t *testing.T, more ...string) []string {
	return append([]string{"TA_GROUP=" + filepath.Join(t.TempDir(), "group"),
		"TA_FAST_HARD=1M", "TA_NORMAL_HARD=64M", "TA_SLOW_HARD=1M", "TA_PURGE_DELAY=0"}, more...)
}

// A member is a process that does what it is told: testdata/group.c.
type member struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	// the file of its standard error
	errors string
}

func newMember(t *testing.T, env []string) *member {
	t.Helper()
	m := &member{t: t, cmd: exec.Command(compile(t, "group.c", "-pthread"))}
	m.cmd.Env = append(append(os.Environ(), quiet...), env...)
	m.cmd.Env = append(m.cmd.Env, "LD_PRELOAD="+testlib.Lib(t))
	stderr, err := os.Create(filepath.Join(t.TempDir(), "errors"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	m.cmd.Stderr, m.errors = stderr, stderr.Name()
	m.in, _ = m.cmd.StdinPipe()
	out, _ := m.cmd.StdoutPipe()
	m.out = bufio.NewReader(out)
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.kill)
	m.want("ready")
	return m
}

// want reads an answer.
func (m *member) want(answer string) {
	m.t.Helper()
	line, _ := m.out.ReadString('\n')
	if got := strings.TrimSpace(line); got != answer {
		m.t.Errorf("%q, not %q", got, answer)
	}
}

// do has the member do something and checks its answer.
func (m *member) do(what, answer string) {
	m.t.Helper()
	fmt.Fprintln(m.in, what)
	m.want(answer)
}

func (m *member) kill() {
	m.cmd.Process.Kill()
	m.cmd.Wait()
}

// noticed waits until the group may look for its dead again.
func noticed() { time.Sleep(10 * time.Millisecond) }

// TestGroupCap: the cap holds for two processes together, and what one frees or leaves behind goes
// to the other.
func TestGroupCap(t *testing.T) {
	env := capped(t)
	a, b := newMember(t, env), newMember(t, env)
	a.do("get 40", "ok")
	b.do("get 30", "null")
	b.do("get 20", "ok")
	a.do("get 20", "null")
	a.do("put", "ok")
	b.do("get 40", "ok")
	a.do("get 10", "null")
	b.kill()
	noticed()
	a.do("get 60", "ok")
	a.do("put", "ok")
	a.do("threads", "ok")
	a.do("get 60", "ok")
}

// TestGroupReport: a report says whether its caps are a group's, which, and what is kept for it.
func TestGroupReport(t *testing.T) {
	for _, least := range []int{512 << 10, 2 << 20, -1} {
		grouped, env := least >= 0, capped(t, fmt.Sprintf("TA_GROUP_MIN=%d", max(least, 0)))
		if least > 1<<20 { // more than the cap of the fast tier
			least = 0
		}
		if !grouped {
			env = env[1:]
		}
		file := filepath.Join(t.TempDir(), "report")
		testlib.Run(t, testlib.Cmd{Args: []string{"true"}, Preload: true,
			Env: append(env, "TA_STATS_FILE="+file)})
		text, err := os.ReadFile(file)
		want := `"grouped": false
  }`
		if grouped {
			want = fmt.Sprintf(`"grouped": true,
    "group": {
      "name": "%s",
      "bytes_min": %d
    }`, strings.TrimPrefix(env[0], "TA_GROUP="), least)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%v, no %s in %s", err, want, text)
		}
	}
}

// TestGroupCached: what a process keeps for reuse goes to one that is refused: at the next slow step
// of the first, or while it rests by the thread of TA_BACKGROUND=1.
func TestGroupCached(t *testing.T) {
	for _, background := range []string{"0", "1"} {
		env := append(capped(t), "TA_PURGE_DELAY=3600s", "TA_BACKGROUND="+background)
		a, b := newMember(t, env), newMember(t, env)
		a.do("get 40", "ok")
		a.do("put", "ok")
		for tries := 0; ; tries++ {
			fmt.Fprintln(b.in, "get 40")
			line, _ := b.out.ReadString('\n')
			if line == "ok\n" {
				if tries == 0 {
					t.Error("nothing was cached")
				}
				break
			}
			if tries == 2400 || line != "null\n" {
				t.Fatalf("background %s: %q after %d tries", background, line, tries)
			}
			time.Sleep(50 * time.Millisecond)
			if background == "0" {
				a.do("threads", "ok")
			}
		}
	}
}

// TestGroupFork: what a child shares with its parent counts for the parent; what it gets counts.
func TestGroupFork(t *testing.T) {
	for _, how := range []string{"fork", "clone"} {
		env := capped(t)
		a, b := newMember(t, env), newMember(t, env)
		a.do("get 40", "ok")
		a.do(how, "child")
		a.do("get 10", "ok")
		a.do("get 30", "null")
		b.do("get 20", "null")
		b.do("get 10", "ok")
		a.do("put", "ok") // the child's own
		a.do("put", "ok") // the parent still has them
		b.do("put", "ok")
		b.do("get 30", map[string]string{"fork": "null", "clone": "ok"}[how])
		a.do("threads", "ok")
		a.do("leave", "left")
		noticed()
		a.do("put", "ok")
		a.do("get 20", "ok")
		b.do("get 10", "ok")
	}
}

// TestGroupGivesUp: a forked child is a member whatever it gives up before it gets memory.
func TestGroupGivesUp(t *testing.T) {
	for _, what := range []string{"files", "filter", "user", "root"} {
		if os.Geteuid() != 0 && (what == "user" || what == "root") {
			continue
		}
		env := capped(t)
		a, b := newMember(t, env), newMember(t, env)
		a.do("fork", "child")
		a.do(what, "ok")
		a.do("get 40", "ok")
		b.do("get 30", "null")
		a.do("get 30", "null")
		a.do("put", "ok")
		b.do("get 30", "ok")
		a.do("leave", "left")
	}
}

// TestGroupForkUnable: a forked child that cannot join says so and has the caps for itself; one that
// must not open files reserves for its parent, and returns only what it has itself.
func TestGroupForkUnable(t *testing.T) {
	env := capped(t)
	a, b := newMember(t, env), newMember(t, env)
	a.do("get 30", "ok")
	a.do("files", "ok")
	a.do("fork", "child")
	b.do("get 30", "ok")
	a.do("get 30", "ok")
	a.do("get 10", "null")
	a.do("leave", "left")
	a.saysOnce("tieralloc: cannot join TA_GROUP " + strings.TrimPrefix(env[0], "TA_GROUP=") +
		": error 24 (too many open files); the caps are for this process alone\n")

	env = capped(t)
	a, b = newMember(t, env), newMember(t, env)
	a.do("get 30", "ok")
	a.do("filter", "ok")
	a.do("fork", "child")
	a.do("get 10", "ok")
	b.do("get 30", "null")
	a.do("put", "ok")
	a.do("put", "ok") // the parent still has them
	b.do("get 40", "null")
	b.do("get 30", "ok")
}

// saysOnce checks what the member has written to standard error.
func (m *member) saysOnce(want string) {
	m.t.Helper()
	if got, _ := os.ReadFile(m.errors); string(got) != want {
		m.t.Errorf("%q, not %q", got, want)
	}
}

// TestGroupExec: a program that is replaced by another returns what it had, and the new one joins.
func TestGroupExec(t *testing.T) {
	env := capped(t)
	a, b := newMember(t, env), newMember(t, env)
	a.do("get 50", "ok")
	a.do("vfork", "ok")
	b.do("get 20", "null")
	a.do("exec", "ready")
	noticed()
	b.do("get 50", "ok")
	a.do("get 20", "null")
	a.do("get 10", "ok")
}

// TestGroupSoft: over the soft cap of the sum, memory goes to the slower tier.
func TestGroupSoft(t *testing.T) {
	dir := t.TempDir()
	env := []string{"TA_GROUP=" + filepath.Join(dir, "group"), "TA_NORMAL_SOFT=32M",
		"TA_STATS_FILE=" + filepath.Join(dir, "%p.json"), "TA_PURGE_DELAY=0"}
	a, b := newMember(t, env), newMember(t, env)
	a.do("get 30", "ok")
	b.do("get 4", "ok")
	b.do("leave", "left")
	b.cmd.Wait()
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(b.cmd.Process.Pid)+".json"))
	if err != nil {
		t.Fatal(err)
	}
	r := valid(t, text)
	if normal, slow := r.tiers()[1].Peak, r.tiers()[2].Peak; slow < 4<<20 || normal > 4<<20 {
		t.Errorf("normal %d, slow %d", normal, slow)
	}
}

// TestGroupSays: a process that cannot join, or comes with other caps, says so.
func TestGroupSays(t *testing.T) {
	env := capped(t)
	newMember(t, env)
	file := strings.TrimPrefix(env[0], "TA_GROUP=")
	readable := filepath.Join(t.TempDir(), "readable")
	os.WriteFile(readable, nil, 0o644)
	for _, c := range []struct {
		env  []string
		says string
	}{
		{append(env, "TA_NORMAL_HARD=32M", "TA_SLOW_SOFT=1M"), "tieralloc: TA_NORMAL_HARD: the group " +
			file + " has 67108864 bytes; using these\n" +
			"tieralloc: TA_SLOW_SOFT: the group " + file + " has none; using none\n"},
		{append(env, "TA_GROUP_MIN=100M"), "tieralloc: TA_GROUP_MIN: the caps of the group " + file +
			" are too small for so much for each process; continuing without\n"},
		{[]string{"TA_GROUP=" + readable}, "tieralloc: cannot join TA_GROUP " + readable +
			": error 1 (the file belongs to another user, or others may use it); " +
			"the caps are for this process alone\n"},
		{[]string{"TA_GROUP=/no/such"}, "tieralloc: cannot join TA_GROUP /no/such: error 2 " +
			"(no such file or directory); the caps are for this process alone\n"},
		{env, ""},
	} {
		r := testlib.Run(t, cmd(c.env, "/bin/true"))
		if r.Stderr != c.says || r.Status != 0 {
			t.Errorf("%v: status %d, %q, not %q", c.env, r.Status, r.Stderr, c.says)
		}
		want := 0
		if c.says != "" {
			want = 78
		}
		if r := testlib.Run(t, cmd(append(c.env, "TA_STRICT=1"), "/bin/true")); r.Status != want {
			t.Errorf("%v: strict: status %d, not %d", c.env, r.Status, want)
		}
	}
}
