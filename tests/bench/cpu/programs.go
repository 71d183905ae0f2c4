package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
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
	file, err := p.write("script.sql", bytes.ReplaceAll(text, []byte(":rows"), []byte(p.text(60_000))))
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

// compiler translates one large file. What runs is the compiler proper, as the driver calls it.
func compiler(p *place) (job, error) {
	gcc, err := program("gcc")
	if err != nil {
		return job{}, err
	}
	var text strings.Builder
	text.WriteString("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")
	for i := range p.scaled(90) {
		fmt.Fprintf(&text, function, i, 5+i%9, 'a'+i%26)
	}
	file, err := p.write("large-source.c", []byte(text.String()))
	return job{args: []string{gcc, "-O2", "-S", "-o", "-", file}, dir: p.dir}, err
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
	return job{args: []string{git, "--no-pager", "log", "-p", "--stat", "-M", "--no-color", "--no-ext-diff", "--no-textconv",
		"-n", p.text(60), strings.TrimSpace(string(head))}, env: []string{"GIT_OPTIONAL_LOCKS=0"}, dir: p.root}, nil
}
