package tool

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/testlib"
)

// verify runs a command by the tool's verify. args are the flags and the command.
func verify(t *testing.T, env []string, args ...string) testlib.Result {
	t.Helper()
	return ctl(t, env, append([]string{"verify", "--library", testlib.Lib(t)}, args...)...)
}

// loader starts the program that is its argument.
const loader = "/lib64/ld-linux-x86-64.so.2"

// TestVerify: which programs the library serves, and why it does not serve the others.
func TestVerify(t *testing.T) {
	nothing := testlib.CC(t, "nothing.c")
	static := testlib.CC(t, "nothing.c", "-static")
	own := testlib.CC(t, "bump.c", "-DPROGRAM")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!"+static+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int
		args   []string
		words  []string
	}{
		{0, []string{nothing}, []string{"serves all programs, 1\n", nothing + " 1 tieralloc\n",
			"tiers on this machine:\n", "simulated"}},
		{0, []string{"sh", "-c", nothing + "; " + nothing + "; exit 3"},
			[]string{"serves all programs, 3\n", nothing + " 2 tieralloc\n"}},
		{0, []string{"sh", "-c", "kill -KILL $$"}, []string{"serves all programs, 1\n"}},
		{1, []string{static}, []string{"does not serve 1 of 1 program\n", "statically linked"}},
		{1, []string{script}, []string{static + " 1 another: it is statically linked"}},
		{1, []string{"sh", "-c", nothing + "; " + static},
			[]string{"does not serve 1 of 3 programs\n", nothing + " 1 tieralloc\n"}},
		{1, []string{own}, []string{"a malloc of its own"}},
		{0, []string{loader, nothing}, []string{"serves all programs, 1\n",
			nothing + " 1 tieralloc\n"}},
		{1, []string{loader, own}, []string{own + " 1 another: it has a malloc of its own"}},
		{1, []string{loader, "--verify", nothing},
			[]string{" 1 another: it ended before the loader"}},
		{1, []string{"env", "-u", "LD_PRELOAD", loader, nothing},
			[]string{"1 of 2 programs", "LD_PRELOAD is not in its environment"}},
		{1, []string{"env", "-u", "LD_PRELOAD", nothing},
			[]string{"1 of 2 programs", "LD_PRELOAD is not in its environment"}},
		{1, []string{"env", "LD_PRELOAD=libm.so.6", nothing},
			[]string{"LD_PRELOAD does not name the library: libm.so.6"}},
		{1, []string{"sh", "-c", "TA_DISABLE=1 " + nothing}, []string{"another: TA_DISABLE=1"}},
		{1, []string{"--interpose=0", nothing}, []string{"another: TA_INTERPOSE=0"}},
		{78, []string{"--fast-soft", "much", nothing}, []string{"was not started", "--fast-soft"}},
		{127, []string{"no-such-program"}, []string{"command not found"}},
		{2, nil, []string{"no command is given"}},
	} {
		r := verify(t, []string{"TA_USE_LIBNUMA=0"}, c.args...)
		if r.Status != c.status || r.Stdout != "" {
			t.Errorf("%q: status %d, not %d; %q", c.args, r.Status, c.status, r.Stdout)
		}
		says(t, squeeze(r.Stderr), c.words...)
	}
}

// TestVerifyStarts: no way of starting a program is missed, and none is changed.
func TestVerifyStarts(t *testing.T) {
	starts, nothing := testlib.CC(t, "starts.c"), testlib.CC(t, "nothing.c")
	r := verify(t, nil, starts, nothing)
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	says(t, squeeze(r.Stderr), "serves all programs, 8\n", nothing+" 7 tieralloc\n")
}

// TestVerifyOutput: the command has the tool's own files, and its output is its own.
func TestVerifyOutput(t *testing.T) {
	r := testlib.Run(t, testlib.Cmd{
		Args: []string{tool(t), "verify", "--library", testlib.Lib(t), "sh", "-c",
			"cat; echo told >&2"}, Env: quiet(), Stdin: "given\n",
	})
	if r.Status != 0 || r.Stdout != "given\n" || !strings.HasPrefix(r.Stderr, "told\n") {
		t.Errorf("%+v", r)
	}
}

// TestVerifyOrder: another malloc that is preloaded before the library serves; LD_PRELOAD stays
// as it is where the library is in it.
func TestVerifyOrder(t *testing.T) {
	nothing, bump := testlib.CC(t, "nothing.c"), testlib.CC(t, "bump.c", "-shared", "-fPIC")
	for _, c := range []struct {
		preload string
		status  int
		words   string
	}{
		{bump + ":" + testlib.Lib(t), 1, "another: " + bump +
			" has malloc, and is loaded before the library"},
		{testlib.Lib(t) + " " + bump, 0, "serves all programs, 1"},
	} {
		// It is the tool's environment, and the tool is served as well.
		r := testlib.Run(t, testlib.Cmd{Args: []string{tool(t), "verify", nothing},
			Env: append(quiet(), "LD_PRELOAD="+c.preload)})
		if r.Status != c.status {
			t.Errorf("%q: %+v", c.preload, r)
		}
		says(t, r.Stderr, c.words)
	}
}

// TestVerifyRights: where a program gains rights, or has none to read the library, the loader
// ignores LD_PRELOAD, and says so at most in passing.
func TestVerifyRights(t *testing.T) {
	testlib.Need(t, "setpriv")
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	dir, err := os.MkdirTemp("", "verify") // that others may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	place := func(name, from string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if out, err := exec.Command("cp", from, path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := testlib.CC(t, "nothing.c")
	hidden := place("hidden", program, 0o711)
	plain, raised := place("plain", program, 0o755), place("raised", program, 0o755|os.ModeSetuid)
	library, secret := place("libtieralloc.so", testlib.Lib(t), 0o755),
		place("libtieralloc.so.secret", testlib.Lib(t), 0o700)
	ctl := place("tierallocctl", tool(t), 0o755)
	nobody := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	for _, c := range []struct {
		args   []string
		status int
		word   string
	}{
		{append([]string{ctl, "verify", "--library", library}, append(nobody, plain)...), 0,
			"serves all programs, 2"},
		{append([]string{ctl, "verify", "--library", library}, append(nobody, raised)...), 1,
			"more rights than its caller"},
		{append([]string{ctl, "verify", "--library", library}, raised), 0,
			"serves all programs, 1"},
		{append(nobody, ctl, "verify", "--library", library, raised), 1, "it is set-user-ID"},
		{append([]string{ctl, "verify", "--library", secret}, append(nobody, plain)...), 1,
			"the loader has ignored " + secret},
		{append(nobody, ctl, "verify", "--library", library, hidden), 1,
			hidden + " 1 not known: its file cannot be read"},
		{append(nobody, ctl, "verify", "--library", library, "sh", "-c", hidden+"; exec "+plain), 1,
			hidden + " 1 not known: its file cannot be read"},
	} {
		r := testlib.Run(t, testlib.Cmd{Args: c.args, Env: quiet()})
		if r.Status != c.status {
			t.Errorf("%q: %+v", c.args, r)
		}
		says(t, squeeze(r.Stderr), c.word)
	}
}

// TestVerifyBackground: a child that goes on after the command's end is let go in one piece, even
// if the loader is at work in it just then.
func TestVerifyBackground(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	slow := testlib.CC(t, "slow.c", "-shared", "-fPIC")
	program := testlib.CC(t, "nothing.c", "-Wl,--no-as-needed", slow)
	r := verify(t, nil, "sh", "-c",
		"("+program+" && sleep 1 && true; echo $? >"+done+") >/dev/null 2>&1 & sleep 0.5")
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	testlib.Wait(t, "the child's file", self, func() bool {
		text, err := os.ReadFile(done)
		return err == nil && len(text) > 0
	})
	if text, _ := os.ReadFile(done); string(text) != "0\n" {
		t.Errorf("it ended with %q", text)
	}
}

// TestVerifyConstructor: a process that a library's constructor forks comes to the program's entry
// as well.
func TestVerifyConstructor(t *testing.T) {
	forks := testlib.CC(t, "forks.c", "-shared", "-fPIC")
	r := verify(t, nil, testlib.CC(t, "nothing.c", "-Wl,--no-as-needed", forks))
	if r.Status != 0 || r.Stdout != "child status 0\n" {
		t.Errorf("%+v", r)
	}
}

// TestVerifyDaemon: a process that starts others while the command ends goes on starting them.
func TestVerifyDaemon(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	r := verify(t, nil, "sh", "-c",
		"(for i in $(seq 600); do (:); done; echo all >"+done+") >/dev/null 2>&1 & sleep 0.1")
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	testlib.Wait(t, "the daemon's file", self, func() bool {
		text, err := os.ReadFile(done)
		return err == nil && len(text) > 0
	})
}

// TestVerifyRoot: in another root the library is not where LD_PRELOAD says.
func TestVerifyRoot(t *testing.T) {
	testlib.NeedMounts(t)
	dir := t.TempDir()
	library := filepath.Join(dir, "libtieralloc.so")
	if out, err := exec.Command("cp", testlib.Lib(t), library).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := ctl(t, nil, "verify", "--library", library, "unshare", "-m", "sh", "-c",
		"mount -t tmpfs none "+dir+" && exec true")
	if r.Status != 1 {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "there is no "+library+" in its file system", "cannot be preloaded")
}

// TestVerifyForeign: programs for another loader.
func TestVerifyForeign(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, tool string
		build      string
		word       string
	}{
		{"tiny32", "as", "as --32 -o tiny.o %s && ld -m elf_i386 -o tiny32 tiny.o", "32-bit"},
		{"musl", "musl-gcc", "musl-gcc -o musl %s",
			"ld-musl-x86_64.so.1: the library needs glibc's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			testlib.Need(t, c.tool)
			source := map[string]string{"tiny32": "tiny32.S", "musl": "nothing.c"}[c.name]
			path, err := filepath.Abs(filepath.Join("testdata", source))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(c.build, "%s", path))
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			program := filepath.Join(dir, c.name)
			status, word := 1, c.word
			if errors.Is(exec.Command(program).Run(), syscall.ENOEXEC) {
				status, word = 126, "exec format error" // a kernel without 32-bit programs
			}
			r := verify(t, nil, program)
			if r.Status != status || !strings.Contains(r.Stderr, word) {
				t.Errorf("%+v", r)
			}
			r = run(t, nil, program)
			says(t, r.Stderr, "the library will not serve "+program+": ", c.word)
		})
	}
}

// TestRunWarns: run says beforehand what verify would find in the command itself.
func TestRunWarns(t *testing.T) {
	for program, word := range map[string]string{
		testlib.CC(t, "nothing.c", "-static"): "it is statically linked",
		testlib.CC(t, "bump.c", "-DPROGRAM"):  "it has a malloc of its own",
		testlib.CC(t, "nothing.c"):            "",
	} {
		r := run(t, nil, "--quiet", program)
		if r.Status != 0 || strings.Contains(r.Stderr,
			"the library will not serve "+program+": "+word) != (word != "") {
			t.Errorf("%s: %+v", program, r)
		}
	}
}

// TestVerifyLater: an allocator that comes after the start is told; so is a namespace's libc.
func TestVerifyLater(t *testing.T) {
	plugin, bump := testlib.CC(t, "plugin.c", "-ldl"), testlib.CC(t, "bump.c", "-shared", "-fPIC")
	for how, word := range map[string]string{"deep": "tieralloc; " + bump + ", loaded later",
		"apart": "libc.so.6, loaded later"} {
		r := verify(t, nil, plugin, how, bump)
		if r.Status != 0 {
			t.Errorf("%s: %+v", how, r)
		}
		says(t, r.Stderr, word)
	}
}
