package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// site is where a server and its clients run: one folder, one preload. Servers
// print times and process numbers, so their tests compare answers only.
type site struct {
	t     *testing.T
	dir   string
	env   []string
	stats string   // "" for the plain run
	user  []string // the command that changes to the server's user, or nothing
}

// newSite makes an empty site. Its folder has a short name, as the path of a
// Unix socket is limited to 107 bytes, and other users may enter it.
func newSite(t *testing.T, preload bool) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "site")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, dir: dir, env: fixedEnv}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if preload {
		s.preload()
	}
	return s
}

// preload uses a copy of the library, since the source tree may lie where the
// server's user cannot read.
func (s *site) preload() {
	s.t.Helper()
	text, err := os.ReadFile(testlib.Lib(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	lib := filepath.Join(s.dir, filepath.Base(testlib.Lib(s.t)))
	if err := os.WriteFile(lib, text, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.stats = filepath.Join(s.dir, "stats")
	if err := os.Mkdir(s.stats, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.env = append(append([]string{}, s.env...), "LD_PRELOAD="+lib, statsEnv(s.stats))
}

// run runs a client with some input, requires status 0 and returns its output.
func (s *site) run(stdin string, args ...string) string {
	s.t.Helper()
	r := testlib.Run(s.t, testlib.Cmd{
		Args: append(append([]string{}, s.user...), args...), Dir: s.dir, Env: s.env, Stdin: stdin, Timeout: 2 * time.Minute,
	})
	if r.Status != 0 {
		s.t.Fatalf("%q ended with %d\nstdout: %s\nstderr: %s", args, r.Status, clip(r.Stdout), clip(r.Stderr))
	}
	return strings.TrimSpace(r.Stdout)
}

// start runs a command beside the test; its output goes to the file log.
func (s *site) start(log string, args ...string) *exec.Cmd {
	s.t.Helper()
	out, err := os.OpenFile(filepath.Join(s.dir, log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

// wait polls until done returns true.
func (s *site) wait(what string, done func() bool) {
	s.t.Helper()
	const poll = 20 * time.Millisecond
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(poll) {
		if done() {
			return
		}
	}
	s.t.Fatalf("waited a minute in vain for %s", what)
}

func (s *site) log(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}
