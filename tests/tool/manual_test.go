package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/testlib"
)

// pages are the built manual's pages, without those that only name another one.
func pages(t *testing.T) (list []string) {
	t.Helper()
	all, _ := filepath.Glob(filepath.Join(testlib.Root(), "build/man/man[137]/*"))
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), ".so ") {
			list = append(list, path)
		}
	}
	if len(list) < 15 {
		t.Fatalf("few pages: %q", list)
	}
	return list
}

// TestManualClean: formatters have nothing to say of the pages.
func TestManualClean(t *testing.T) {
	list := pages(t)
	for _, args := range [][]string{
		{"mandoc", "-T", "lint", "-W", "warning"}, {"groff", "-man", "-ww", "-z", "-K", "utf8"},
	} {
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Logf("%s is not installed", args[0])
			continue
		}
		out, err := exec.Command(args[0], append(args[1:], list...)...).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}

// TestManualFound: man finds each function and each command by its name.
func TestManualFound(t *testing.T) {
	testlib.Need(t, "man")
	for _, page := range [][2]string{{"3", "ta_free"}, {"3", "ta_mm_charge"},
		{"1", "tierallocctl-run"},
		{"7", "tieralloc"}} {
		cmd := exec.Command("man", "-M", filepath.Join(testlib.Root(), "build/man"), page[0],
			page[1])
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), page[1]) {
			t.Errorf("%q: %v\n%s", page, err, out)
		}
	}
}

// TestManualVariables: tieralloc(7) has all variables, and help explains each of them.
func TestManualVariables(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testlib.Root(), "build/man/man7/tieralloc.7"))
	if err != nil {
		t.Fatal(err)
	}
	for i := uintptr(0); ; i++ {
		name, accepts, fallback, ok := config.Describe(i)
		if !ok {
			break
		}
		if !regexp.MustCompile(`\.B "` + name + `=`).Match(text) {
			t.Errorf("%s is missing", name)
		}
		if i%9 == 0 {
			r := ctl(t, nil, "help", name)
			says(t, r.Stdout, name+": ", accepts, fallback, "example  "+name+"=")
		}
	}
}

// TestHelp: help and --help say the same; what is unknown gets the nearest name.
func TestHelp(t *testing.T) {
	for _, name := range []string{"run", "verify", "help", "version"} {
		if a, b := ctl(t, nil, "help", name), ctl(t, nil, name, "--help"); a.Stdout != b.Stdout ||
			a.Status != 0 {
			t.Errorf("%s: %q\nand\n%q", name, a.Stdout, b.Stdout)
		}
	}
	says(t, ctl(t, nil, "help").Stdout, `"tierallocctl help VARIABLE"`, "verify  ")
	for name, near := range map[string]string{"TA_FAST_HRAD": "TA_FAST_HARD", "chek": "check",
		"fast_hard": "TA_FAST_HARD"} {
		r := ctl(t, nil, "help", name)
		if r.Status != 2 || r.Stdout != "" {
			t.Errorf("%s: %+v", name, r)
		}
		says(t, r.Stderr, "did you mean "+near+"?")
	}
}

// TestCompletions: bash completes commands, flags and values by the script; other shells read it.
func TestCompletions(t *testing.T) {
	dir := filepath.Join(testlib.Root(), "build/completions")
	for shell, file := range map[string]string{"zsh": "zsh/_tierallocctl",
		"fish": "fish/tierallocctl.fish", "bash": "bash/tierallocctl"} {
		path := filepath.Join(dir, file)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("%s is not installed", shell)
		} else if out, err := exec.Command(shell, "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	completeInBash(t, "true") // without the package bash-completion
	const helpers = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(helpers); err != nil {
		t.Skip("bash-completion is not installed")
	}
	completeInBash(t, ". "+helpers)
}

// completeInBash loads the script in a bash that has run the command begin, and completes lines.
func completeInBash(t *testing.T, begin string) {
	t.Helper()
	dir := filepath.Join(testlib.Root(), "build/completions")
	script := begin + ` && . "$1" && complete -p tierallocctl >/dev/null || exit
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)) COMP_LINE="${*:2}" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
__start_tierallocctl; printf '%s\n' "${COMPREPLY[@]}"`
	for line, want := range map[string]string{"ver": "verify", "run --fast-ha": "--fast-hard",
		"run --on-softcap dem": "demote", "run --on-softcap=dem": "demote", "help TA_SLOW_BU": "TA_SLOW_BURST"} {
		args := append([]string{"--norc", "-c", script, "x",
			filepath.Join(dir, "bash/tierallocctl"),
			"tierallocctl"}, strings.Fields(line)...)
		cmd := exec.Command("bash", args...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(tool(t))+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) ||
			strings.Contains(string(out), "not found") {
			t.Errorf("%s, after %s: %v, %q", line, begin, err, out)
		}
	}
}
