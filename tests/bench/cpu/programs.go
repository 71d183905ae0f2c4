package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Real programs. Each prints something that depends on nothing but its arguments.

func script(p *place, name string, args []string, programs ...string) (job, error) {
	path, err := program(programs...)
	return job{args: append([]string{path, p.source(name)}, args...)}, err
}

func python(p *place) (job, error) {
	return script(p, "script.py", []string{p.text(4)}, "python3")
}

// pythonMalloc asks malloc for every object, where Python would use an allocator of its own.
func pythonMalloc(p *place) (job, error) {
	j, err := python(p)
	j.env = []string{"PYTHONMALLOC=malloc"}
	return j, err
}

// numpy makes arrays of all sizes.
func numpy(p *place) (job, error) { return pythonWith(p, "numpy", "arrays.py", 3) }

// torch trains a small model on the processor.
func torch(p *place) (job, error) { return pythonWith(p, "torch", "train.py", 30) }

// pythonWith runs a script by a Python that has the module, whose own threads would be what is
// measured.
func pythonWith(p *place, module, name string, n int) (job, error) {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(python)
		if err != nil || exec.Command(path, "-c", "import "+module).Run() != nil {
			continue
		}
		j, err := script(p, name, []string{p.text(n)}, path)
		j.env = []string{"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"}
		return j, err
	}
	return job{}, lacking("python3 with " + module)
}

func ruby(p *place) (job, error) {
	path, err := program("ruby")
	return job{args: []string{path, "--disable-gems", p.source("script.rb"), p.text(5)}}, err
}

func php(p *place) (job, error) {
	path, err := program("php")
	return job{args: []string{path, "-n", "-d", "memory_limit=-1", p.source("script.php"),
		p.text(5)}}, err
}

// phpMalloc asks malloc for every block, where PHP would use an allocator of its own.
func phpMalloc(p *place) (job, error) {
	j, err := php(p)
	j.env = []string{"USE_ZEND_ALLOC=0"}
	return j, err
}

func perl(p *place) (job, error) { return script(p, "script.pl", []string{p.text(6)}, "perl") }

func lua(p *place) (job, error) {
	return script(p, "script.lua", []string{p.text(2)}, "lua5.4", "lua", "luajit", "lua5.3")
}

func node(p *place) (job, error) { return script(p, "script.js", []string{p.text(12)}, "node") }

func awk(p *place) (job, error) {
	path, err := program("gawk")
	return job{args: []string{path, "-v", "rounds=" + p.text(1), "-f", p.source("script.awk")}}, err
}

func sqlite(p *place) (job, error) {
	path, err := program("sqlite3")
	if err != nil {
		return job{}, err
	}
	text, err := os.ReadFile(p.source("script.sql"))
	if err != nil {
		return job{}, err
	}
	// Older shells cannot bind a parameter before a script runs.
	file, err := p.write("script.sql", bytes.ReplaceAll(text, []byte(":rows"),
		[]byte(p.text(60_000))))
	return job{args: []string{path, "-batch", "-init", os.DevNull, ":memory:"}, stdin: file}, err
}

// sorting is two million lines, by two threads.
func sorting(p *place) (job, error) {
	path, err := program("sort")
	if err != nil {
		return job{}, err
	}
	var text bytes.Buffer
	state := uint64(88172645463325252)
	for range p.scaled(2_000_000) {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		fmt.Fprintf(&text, "%x\n", state>>(state%32))
	}
	file, err := p.write("lines", text.Bytes())
	return job{args: []string{path, "--parallel=2", "-T", p.dir, file}}, err
}

// sortingKeys is 300,000 lines by a numeric key, with all threads. Comparisons of GNU sort call
// free(NULL), in threads that never allocate.
func sortingKeys(p *place) (job, error) {
	path, err := program("sort")
	if err != nil {
		return job{}, err
	}
	var text bytes.Buffer
	state := uint64(88172645463325252)
	for range p.scaled(300_000) {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		fmt.Fprintf(&text, "%016x %d\n", state, state%1_000_000_007)
	}
	file, err := p.write("keys", text.Bytes())
	return job{args: []string{path, "-k2n", "--parallel=" + strconv.Itoa(p.threads), "-T", p.dir,
		file}}, err
}

// startUp starts 300 processes that do nothing, so its time is that of start-up, fork and exit.
func startUp(p *place) (job, error) {
	path, err := program("bash")
	if err != nil {
		return job{}, err
	}
	return job{args: []string{path, "-c", "for ((i = 0; i < " + p.text(300) +
		"; i++)); do /bin/true; done; echo $i"}}, nil
}

// history reads all changes that the project's repository knows.
func history(p *place) (job, error) {
	git, err := program("git")
	if err != nil {
		return job{}, err
	}
	// The newest commit is named, for another may come while this runs.
	head, err := exec.Command(git, "-C", p.root, "rev-parse", "HEAD").Output()
	if err != nil {
		return job{}, lacking("history of the project (git rev-parse HEAD)")
	}
	return job{args: []string{git, "--no-pager", "log", "-p", "--stat", "-M", "--no-color",
		"--no-ext-diff", "--no-textconv",
		"-n", p.text(60), strings.TrimSpace(string(head))}, env: []string{"GIT_OPTIONAL_LOCKS=0"},
		dir: p.root}, nil
}
