package system

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestBare clones the tree into a system that has nothing but git, Debian 12's and 13's, and does
// there what the README tells a stranger to do. Of the tests it runs a part, and all of them where
// TA_TEST_BARE_ALL is set: that takes a quarter of an hour.
func TestBare(t *testing.T) {
	asked(t)
	first := sources(t)[0]
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			r := newRoot(t, []source{{first.uri, suite, first.components}}, "git")
			r.bundle()
			r.network()
			first, second := readmeCommands(t)
			r.write("tests/first.sh", first, 0o755)
			r.write("tests/second.sh", second, 0o755)
			t.Log(r.run("bare.sh"))
			if all := read(t, filepath.Join(r.dir, "tests/all.out")); all != "" {
				t.Logf("./build.sh test printed\n%s", last(all))
			}
			checkRun(t, r)
			t.Log(read(t, filepath.Join(r.dir, "tests/verify.out")))
			checkInstall(t, r)
			if tests := read(t, filepath.Join(r.dir, "tests/test.out")); !strings.Contains(tests,
				"ok  \ttieralloc/internal/config") || strings.Contains(tests, "FAIL") {
				t.Errorf("./build.sh test ./internal/... ./tiers ./cudahook printed\n%s", last(tests))
			}
		})
	}
}

// bundle puts the tree's last commit into the root, for git to clone.
func (r *root) bundle() {
	r.t.Helper()
	bundle := exec.Command("git", "-C", testlib.Root(), "bundle", "create", "-q",
		filepath.Join(r.dir, "tests/tree.bundle"), "HEAD")
	if text, err := bundle.CombinedOutput(); err != nil {
		r.t.Fatalf("git bundle: %v\n%s", err, text)
	}
}

// network gives the root this machine's way to the network: its proxies, where its Go looks for
// modules, and the certificates that its administrator trusts.
func (r *root) network() {
	r.t.Helper()
	var text strings.Builder
	set := func(name, value string) {
		text.WriteString("export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'\n")
	}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY",
		"HTTPS_PROXY", "NO_PROXY"} {
		if value := os.Getenv(name); value != "" {
			set(name, value)
		}
	}
	for _, name := range []string{"GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB"} {
		if value, err := exec.Command("go", "env", name).Output(); err == nil && len(value) > 1 {
			set(name, strings.TrimSpace(string(value)))
		}
	}
	set("TA_TEST_BARE_ALL", os.Getenv("TA_TEST_BARE_ALL"))
	r.write("tests/environment", text.String(), 0o644)
	const trusted = "/usr/local/share/ca-certificates"
	if err := os.CopyFS(filepath.Join(r.dir, trusted), os.DirFS(trusted)); err != nil {
		r.t.Logf("certificates: %v", err)
	}
}

// checkRun holds the first command to what it is to print: the program's output, and on standard
// error one line for each thing that was fetched, and the summary.
func checkRun(t *testing.T, r *root) {
	t.Helper()
	if got := read(t, filepath.Join(r.dir, "tests/run.out")); got != firstOutput {
		t.Errorf("the README's first command printed %q, not %q", got, firstOutput)
	}
	refused := read(t, filepath.Join(r.dir, "tests/refused.out"))
	if strings.Count(refused, "\n") != 1 || !strings.Contains(refused, "https://go.dev/dl/") {
		t.Errorf("without Go and without the right to install it: %q", refused)
	}
	text := read(t, filepath.Join(r.dir, "tests/run.err"))
	t.Log(text)
	fetched, summary, found := strings.Cut(text, "perl (process ")
	if !found || !strings.Contains(summary, "NORMAL") {
		t.Error("./build.sh run sums up nothing")
	}
	lines := strings.SplitAfter(fetched, "\n")
	expected := []string{"build.sh: installing ", "build.sh: go version ",
		"build.sh: downloading Go modules\n", ""}
	if !slices.EqualFunc(lines, expected, strings.HasPrefix) {
		t.Errorf("./build.sh run says %q before the summary, not one line for each of %q", fetched,
			expected)
	}
}

// checkInstall: the linker of the root finds what was installed, and no glibc newer than the README
// says is needed, although a newer one was there.
func checkInstall(t *testing.T, r *root) {
	t.Helper()
	if text := read(t, filepath.Join(r.dir, "tests/install.out")); !strings.Contains(text,
		"LD_PRELOAD=libtieralloc.so.1 COMMAND") {
		t.Errorf("./build.sh install printed %q", text)
	}
	if text := read(t, filepath.Join(r.dir, "tests/short.json")); !strings.Contains(text,
		`"program"`) {
		t.Errorf("a preload by the short name left the report %q", text)
	}
	for _, name := range []string{"libtieralloc.so", "tierallocctl"} {
		if minor, from := testlib.Glibc(t, filepath.Join(r.dir, "srv/tieralloc/build",
			name)); minor > 34 {
			t.Errorf("%s needs glibc 2.%d, for %s", name, minor, from)
		}
	}
}
