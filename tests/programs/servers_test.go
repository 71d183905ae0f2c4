package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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

func newSite(t *testing.T, preloaded bool) *site {
	t.Helper()
	s := &site{t: t, dir: openFolder(t), env: fixedEnv}
	if preloaded {
		pre := newPreload(t, s.dir)
		s.stats = pre.stats
		s.env = append(append([]string{}, s.env...), pre.env...)
	}
	return s
}

// own gives the site to a user other than root, who runs everything in it: some servers refuse
// root, others change to a user of the system's.
func (s *site) own() {
	s.t.Helper()
	folders := []string{s.dir}
	if s.stats != "" {
		folders = append(folders, s.stats)
	}
	s.user = become(s.t, folders...)
}

// run runs a client with some input, requires status 0 and returns its output.
func (s *site) run(stdin string, args ...string) string {
	s.t.Helper()
	r := testlib.Run(s.t, testlib.Cmd{
		Args: append(append([]string{}, s.user...), args...), Dir: s.dir, Env: s.env, Stdin: stdin,
	})
	if r.Status != 0 {
		s.t.Fatalf("%q ended with %d\nstdout: %s\nstderr: %s", args, r.Status, clip(r.Stdout),
			clip(r.Stderr))
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
	args = append(append([]string{}, s.user...), args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if s.t.Failed() {
			s.t.Logf("%q: %v; it said: %s", args, cmd.ProcessState, clip(s.log(log)))
		}
	})
	return cmd
}

func (s *site) log(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

var digits = regexp.MustCompile("[0-9]+")

// faults returns the lines of a log that have one of the words, from there on and without numbers.
// A machine may refuse a server something with and without the library: sameFaults compares.
func (s *site) faults(name string, words ...string) []string {
	s.t.Helper()
	var faults []string
	for line := range strings.Lines(s.log(name)) {
		for _, word := range words {
			if at := strings.Index(line, word); at >= 0 {
				faults = append(faults, digits.ReplaceAllString(line[at:], "#"))
				break
			}
		}
	}
	return faults
}

// sameFaults fails the test if the preloaded server met a fault that the plain one did not.
func sameFaults(t *testing.T, plain, preloaded []string) {
	t.Helper()
	for _, fault := range preloaded {
		if !slices.Contains(plain, fault) {
			t.Errorf("the server said, preloaded only: %s", fault)
		}
	}
}
