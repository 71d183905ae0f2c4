package process

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// filterEnvs are settings under which the heap makes only the system calls of the short list in
// docs/limits.md.
var filterEnvs = [][]string{
	{},
	{"TA_SECURE=1"},
	{"TA_FAST_HARD=24M"},
	{"TA_FAST_HARD=24M", "TA_SECURE=1"},
	{"TA_FAST_SOFT=8M", "TA_ON_SOFTCAP=demote", "TA_DEFAULT_HINT=HOT"},
	{"TA_FAST_HARD=40M", "TA_NORMAL_HARD=40M", "TA_SLOW_SOFT=40M"},
	{"TA_FAST_HARD=2M", "TA_DEFAULT_HINT=HOT", "TA_GROUP=DIR/group"},
	{"TA_RULES=size>=1M:cold"},
	{"TA_RULES=thread=filter:hot"},
	{"TA_PURGE_DELAY=0"},
	{"TA_HUGEPAGES=thp"},
	{"TA_SLOW_BW=10G", "TA_DEFAULT_HINT=COLD"},
}

// TestFilterKills: a filter that kills a process for every system call that is not on the list of
// docs/limits.md kills none that allocates, frees, starts threads, forks or exits, and nothing is
// said.
func TestFilterKills(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "filter.c")
	for _, env := range filterEnvs {
		for _, how := range []string{"prctl", "syscall more"} {
			t.Run(strings.Join(env, ",")+" "+how, func(t *testing.T) {
				t.Parallel()
				env, dir := slices.Clone(env), t.TempDir()
				for i := range env {
					env[i] = strings.Replace(env[i], "DIR", dir, 1)
				}
				clean(t, preloaded(t, env, strings.Fields(prog+" "+how)...))
			})
		}
	}
}

// TestFilterInherits: a program that has no_new_privs from another and makes its filter by
// syscall(2) is not killed either.
func TestFilterInherits(t *testing.T) {
	t.Parallel()
	testlib.Need(t, "setpriv")
	prog := testlib.CC(t, "filter.c")
	for _, env := range filterEnvs[:2] {
		clean(t, preloaded(t, env, "setpriv", "--no-new-privs", prog, "inherits", "more"))
	}
}

// TestFilterPast: a filter that is set past libc and knows what docs/limits.md says that such filters
// must know kills no program either.
func TestFilterPast(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "filter.c")
	for _, env := range filterEnvs[:3] {
		clean(t, preloaded(t, env, prog, "past"))
	}
}

// TestFilterBackground: nor is a program killed that asks for background work, which it then does
// without.
func TestFilterBackground(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "filter.c")
	clean(t, preloaded(t, []string{"TA_BACKGROUND=1", "TA_LOG=warn"}, prog, "all"))
}

// TestAlone: with background work and a log of warnings asked for, a program can still make the
// calls that need a process of one thread, while it has just begun.
func TestAlone(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "alone.c")
	for _, call := range []string{"keeps", "unshares", "unshares raw", "unshares folder",
		"changes user", "enters", "enters raw", "filters", "in child", "in forked"} {
		t.Run(call, func(t *testing.T) {
			clean(t, preloaded(t, []string{"TA_BACKGROUND=1", "TA_LOG=warn"}, prog, call))
		})
	}
}

// TestFilterReport: what is written at exit is written when a program sets its filter, and not again,
// by its children either. A filter that is not set by libc's functions, and knows the calls of a
// report, leaves one of each process.
func TestFilterReport(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "filter.c")
	for _, c := range []struct {
		args    string
		reports int
	}{{"prctl", 1}, {"syscall more", 1}, {"unseen report", 3}} { // of the program, of its two children
		for _, env := range filterEnvs[:3] {
			dir := t.TempDir()
			env := append([]string{"TA_STATS_FILE=" + filepath.Join(dir, "%p.json")}, env...)
			clean(t, preloaded(t, env, strings.Fields(prog+" "+c.args)...))
			files := statsFiles(t, dir)
			if len(files) != c.reports {
				t.Errorf("%s %v: %d reports: %v", c.args, env, len(files), files)
			}
			for _, name := range files {
				validReport(t, filepath.Join(dir, name))
			}
		}
	}
}

// TestFilterOutput: no file that a program is to leave kills it under its filter.
func TestFilterOutput(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "filter.c")
	for _, env := range [][]string{{"TA_PROFILE=DIR/p", "TA_PROFILE_RATE=64K", "TA_PROFILE_EVERY=1M"},
		{"TA_STATS_LIVE=DIR/live.%p"}, {"TA_LOG=warn", "TA_LOG_FILE=DIR/log"}} {
		for _, how := range []string{"prctl", "syscall more"} {
			env, dir := slices.Clone(env), t.TempDir()
			for i := range env {
				env[i] = strings.Replace(env[i], "DIR", dir, 1)
			}
			clean(t, preloaded(t, env, strings.Fields(prog+" "+how)...))
		}
	}
}
