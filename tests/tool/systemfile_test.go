package tool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// withConf runs the tool where /etc/tieralloc.conf has the text, in a mount namespace of its own.
func withConf(t *testing.T, text string, mode os.FileMode, env []string,
	args ...string) testlib.Result {
	t.Helper()
	testlib.NeedMounts(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "tieralloc.conf")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(conf, []byte(text), 0o644),
		os.Chmod(conf, mode)); err != nil {
		t.Fatal(err)
	}
	// the tool's own files in /etc are its library's paths at most
	return testlib.Run(t, testlib.Cmd{Env: append([]string{"LC_ALL=C"}, env...),
		Args: append([]string{"unshare", "-m", "sh", "-c",
			`mount --bind "$0" /etc && exec "$@"`, dir,
			filepath.Join(testlib.Root(), "build", "tierallocctl")}, args...)})
}

// TestCheckFile: check reads the file for the whole system as the library does, and says where each
// value comes from and what it passes over.
func TestCheckFile(t *testing.T) {
	r := withConf(t, "# "+
		"all\nTA_FAST_SOFT='96M'\nTA_LOG=info\nTA_ONLY=redis-server,python3*\nPATH=/x\n",
		0o644, []string{"TA_LOG=warn"}, "check")
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	says(t, squeeze(r.Stdout), "TA_FAST_SOFT 96M file soft cap of FAST", "TA_LOG warn set",
		"TA_ONLY redis-server,python3* file the programs to serve",
		"unknown to the library, and ignored:", "PATH in /etc/tieralloc.conf",
		"/etc/tieralloc.conf: every program with the library reads it")

	r = withConf(t, "TA_ONLY=/usr/bin/x\nTA_FAST_SOTF=1M\nnonsense\n", 0o644, nil, "check")
	if r.Status != 78 {
		t.Errorf("%+v", r)
	}
	says(t, squeeze(r.Stdout), "3 mistakes:", `TA_ONLY="/usr/bin/x": expected names of programs`,
		"the library uses: no program", "did you mean TA_FAST_SOFT?",
		`/etc/tieralloc.conf: "nonsense": expected NAME=value`)

	r = withConf(t, "TA_FAST_SOFT=96M\n", 0o666, nil, "check")
	if r.Status != 0 || strings.Contains(r.Stdout, "96M") {
		t.Errorf("%+v", r)
	}
	says(t, squeeze(r.Stdout),
		"/etc/tieralloc.conf is ignored: others than root can write to it")
}

// TestRunFile: run and verify go by the file, too.
func TestRunFile(t *testing.T) {
	r := withConf(t, "TA_ONLY=cat\n", 0o644, nil, "run", "--", "/bin/true")
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "will not serve /bin/true: TA_ONLY does not name it")
	r = withConf(t, "TA_ONLY=cat\n", 0o644, nil, "run", "--", "cat", "/dev/null")
	if r.Status != 0 || strings.Contains(r.Stderr, "TA_ONLY") {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "cat (process ")
	if r = withConf(t, "TA_LOG=loud\n", 0o644, nil, "run", "--", "true"); r.Status != 78 {
		t.Errorf("%+v", r)
	}
	r = withConf(t, "TA_ONLY=sh\n", 0o644, nil, "verify", "--", "sh", "-c", "/bin/true; :")
	if r.Status != 1 {
		t.Errorf("%+v", r)
	}
	says(t, squeeze(r.Stderr), "does not serve 1 of 2 programs", "TA_ONLY does not name it")
}

// TestStatsSystemFile: stats finds the pages of processes that were killed where the file says that pages
// are kept.
func TestStatsSystemFile(t *testing.T) {
	dir := t.TempDir()
	text := "TA_STATS_LIVE=" + dir + "/%p.page\n"
	r := testlib.Run(t, testlib.Cmd{Env: []string{"LD_PRELOAD=" + testlib.Lib(t), strings.TrimSpace(text)},
		Args: []string{"sh", "-c", "kill -9 $$"}})
	pages, err := filepath.Glob(dir + "/*.page")
	if err != nil || len(pages) != 1 {
		t.Fatalf("%v, %v: %+v", pages, err, r)
	}
	pid := strings.TrimSuffix(filepath.Base(pages[0]), ".page")
	says(t, withConf(t, text, 0o644, nil, "stats").Stdout, pages[0])
	says(t, withConf(t, text, 0o644, nil, "stats", pid).Stdout, "process "+pid)
	withConf(t, text, 0o644, nil, "stats", "--prune")
	if _, err := os.Stat(pages[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("not removed: %v", err)
	}
}
