package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// pythons are the system's Python and the one in PATH, where they differ: the
// latter is often a shell script that finds an interpreter and execs it.
func pythons(t *testing.T) []string {
	t.Helper()
	inPath, err := exec.LookPath("python3")
	if err != nil {
		testlib.Lacks(t, "python3")
	}
	const system = "/usr/bin/python3"
	if _, err := os.Stat(system); err != nil || filepath.Clean(inPath) == system ||
		inPath == "/bin/python3" {
		return []string{inPath}
	}
	return []string{system, inPath}
}

// pythonProgram runs a script of testdata. PYTHONMALLOC=malloc, given by some
// of the callers, sends every small object to malloc as well.
func pythonProgram(python, file string, env ...string) program {
	return program{name: file, args: []string{python, "@" + file}, env: env, limit: 3 * time.Minute}
}

func TestPython(t *testing.T) {
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			runAll(t, []program{
				pythonProgram(python, "data.py"),
				pythonProgram(python, "threads.py"),
				pythonProgram(python, "procs.py"),
			})
		})
	}
}

// TestPythonMalloc uses one interpreter only: it differs from TestPython in how
// many blocks Python asks for, not in how it is started.
func TestPythonMalloc(t *testing.T) {
	python := pythons(t)[0]
	const env = "PYTHONMALLOC=malloc"
	runAll(t, withEnv([]program{
		pythonProgram(python, "data.py"),
		pythonProgram(python, "threads.py"),
		pythonProgram(python, "procs.py"),
	}, env))
}

func TestPerl(t *testing.T) {
	runAll(t, []program{{name: "perl", args: []string{"perl", "@work.pl"}, status: 255}})
}

func TestNode(t *testing.T) {
	runAll(t, []program{{name: "node", args: []string{"node", "@work.js"}, status: 4}})
}

// TestPHP: php opens its extensions with RTLD_DEEPBIND, and those find libc's free before the
// library's.
func TestPHP(t *testing.T) {
	runAll(t, []program{
		{name: "extensions only", args: []string{"php", "-r", "1;"}},
		{name: "php", args: []string{"php", "@work.php"}, status: 3},
	})
}

func TestR(t *testing.T) {
	runAll(t, []program{{name: "R", args: []string{"Rscript", "--vanilla", "@work.R"}, status: 3}})
}

func TestJava(t *testing.T) {
	testlib.Need(t, "java", "javac")
	runAll(t, []program{
		{name: "version", args: []string{"java", "-version"}},
		script("churn", `javac -d . "$0" && java -Xmx100m -XX:+UseSerialGC Churn; exec java `+
			`-Xmx200m -XX:+UseParallelGC Churn`).with("@Churn.java", 3),
		script("server", `javac -d . "$0" && exec java -Xmx200m Serve`).with("@Serve.java", 3),
	})
}

// with gives a script its $0 and the status it must end with.
func (p program) with(arg string, status int) program {
	p.args = append(append([]string{}, p.args...), arg)
	p.status = status
	return p
}
