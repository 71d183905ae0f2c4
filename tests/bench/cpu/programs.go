package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// numpy makes arrays of all sizes. Its own threads would be what is measured.
func numpy(p *place) (job, error) {
	j, err := script(p, "arrays.py", []string{p.text(3)}, "python3")
	if err != nil {
		return job{}, err
	}
	if exec.Command(j.args[0], "-c", "import numpy").Run() != nil {
		return job{}, lacking("numpy for " + j.args[0])
	}
	j.env = []string{"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"}
	return j, nil
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

// function is a part of what the compiler gets; %[1]d is its number.
const function = `
struct pair_%[1]d { int key, value; struct pair_%[1]d *next; };
static int compare_%[1]d(const void *a, const void *b)
{
	const struct pair_%[1]d *x = a, *y = b;
	return (x->key > y->key) - (x->key < y->key);
}
int work_%[1]d(struct pair_%[1]d *list, unsigned n, const char *text)
{
	unsigned long h = %[1]dul;
	int table[%[2]d] = {0}, sum = 0;
	qsort(list, n, sizeof *list, compare_%[1]d);
	for (unsigned i = 0; i < n; i++) {
		struct pair_%[1]d *p = &list[i];
		switch (p->key %% 11) {
		case 0: sum += p->value * %[1]d; break;
		case 1: sum ^= p->value << (i & 7); break;
		case 2: table[i %% %[2]d] += p->key; break;
		case 5: for (p = p->next; p != NULL; p = p->next) sum += p->key ^ p->value; break;
		case 7: h = h * 31 + strlen(text + i %% 3); break;
		default: sum -= (int)(h >> (p->key & 15));
		}
		while (*text != 0 && *text != '%[3]c')
			h = (h ^ (unsigned char)*text++) * 1099511628211ul;
	}
	for (int i = 0; i < %[2]d; i++)
		for (int k = 0; k < i; k++)
			sum += table[i] > table[k] ? table[i] * k : printf("%%d %%lu\n", table[k], h);
	return sum + (int)h;
}
`

func gcc(p *place) (job, error) { return compiler(p, "gcc") }

func clang(p *place) (job, error) { return compiler(p, "clang") }

// compiler translates one large file. What runs is the compiler proper, as the driver calls it.
func compiler(p *place, name string) (job, error) {
	path, err := program(name)
	if err != nil {
		return job{}, err
	}
	var text strings.Builder
	text.WriteString("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")
	for i := range p.scaled(90) {
		fmt.Fprintf(&text, function, i, 5+i%9, 'a'+i%26)
	}
	file, err := p.write("large-source.c", []byte(text.String()))
	return job{args: []string{path, "-O2", "-S", "-o", "-", file}, dir: p.dir}, err
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

// class is a part of what the Java compiler gets; %[1]d is its number.
const class = `
	interface Shape%[1]d<T extends Comparable<T>> { T best(List<? extends T> list); default int size() { return %[1]d; } }
	static class Work%[1]d implements Shape%[1]d<String> {
		final Map<String, List<Integer>> lengths = new TreeMap<>();
		public String best(List<? extends String> list) {
			return list.stream().filter(s -> s.length() > %[1]d).map(s -> s + "%[1]d").sorted(Comparator.comparing(String::length)).findFirst().orElse("none");
		}
		int run(String text) {
			for (String w : text.split(" "))
				lengths.computeIfAbsent(w, k -> new ArrayList<>()).add(w.length());
			Function<Integer, Function<Integer, Integer>> f = a -> b -> a * b + %[1]d;
			switch (text.length() %% 3) {
			case 0: return f.apply(3).apply(lengths.size());
			case 1: return lengths.values().stream().mapToInt(List::size).sum();
			default: return best(new ArrayList<>(lengths.keySet())).hashCode();
			}
		}
	}
`

// javac is a program for the Java virtual machine: the compiler, which is written in Java.
func javac(p *place) (job, error) {
	path, err := program("javac")
	if err != nil {
		return job{}, err
	}
	var text strings.Builder
	text.WriteString("import java.util.*;\nimport java.util.function.*;\nclass Large {\n")
	for i := range p.scaled(40) {
		fmt.Fprintf(&text, class, i)
	}
	text.WriteString("}\n")
	file, err := p.write("Large.java", []byte(text.String()))
	return job{args: []string{path, "-J-XX:+UseSerialGC", "-J-Xmx256m", "-proc:none", "-d",
		filepath.Join(p.dir, "classes"), file}}, err
}
