package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// privileged is a folder to be mounted over /etc, in which a set-user-ID program and the library
// are. The loader preloads what /etc/ld.so.preload names for such programs, too.
func privileged(t *testing.T) (dir string) {
	t.Helper()
	testlib.NeedMounts(t)
	testlib.Need(t, "setpriv")
	dir = t.TempDir()
	for to, from := range map[string]string{"program": testlib.CC(t, "privileged.c"),
		"lib.so": testlib.Lib(t)} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "program"), 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ld.so.preload"), []byte("/etc/lib.so\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{dir, filepath.Join(dir, "out")} { // anybody may write a report
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPrivileged: whoever starts a set-user-ID program with the library has no say in what the
// library does: it starts no thread, writes no line and no file, and serves all blocks as it does
// without a setting.
func TestPrivileged(t *testing.T) {
	t.Parallel()
	dir := privileged(t)
	const script = `mount --bind "$0" /etc && exec setpriv --reuid=65534 --regid=65534 ` +
		`--clear-groups env "$@" /etc/program`
	for _, env := range []string{"", "TA_LOG=debug", "TA_LOG=debug TA_LOG_FILE=/etc/out/log",
		"TA_BACKGROUND=1", "TA_DISABLE=1",
		"TA_INTERPOSE=0", "TA_STRICT=1 TA_FAST_HARD=much", "TA_FAST_HARD=much",
		"TA_DEFAULT_HINT=cold", "TA_RULES=size>=1:cold",
		"TA_NORMAL_HARD=1M", "TA_STATS_FILE=/etc/out/report", "TA_STATS_FILE=/no/such/folder",
		"TA_STATS_LIVE=1",
		"TA_STATS_LIVE=/etc/out/%p", "TA_STRICT=1 TA_NODE_FAST=60"} {
		t.Run(env, func(t *testing.T) {
			r := testlib.Run(t, testlib.Cmd{Env: quiet,
				Args: append([]string{"unshare", "-m", "sh", "-c", script, dir},
					strings.Fields(env)...)})
			clean(t, r)
			if r.Stdout != "tiers 1 1, threads 1\n" {
				t.Error(r.Stdout)
			}
			if files := statsFiles(t, filepath.Join(dir, "out")); len(files) != 0 {
				t.Errorf("it has written %q", files)
			}
		})
	}
}
