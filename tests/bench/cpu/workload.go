package main

import (
	"context"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
)

// workload is a line of the tables.
type workload struct {
	name    string
	prepare func(*place) (job, error) // lacking: it cannot run here
}

// job is what a workload runs, once for each allocator and round.
type job struct {
	args  []string
	env   []string
	stdin string // a file
	dir   string
	user  *syscall.Credential // nil: this process's
	own   bool                // of work/: it prints its checksum, and more (see work.h)
	// once takes the place of running args, where there is more to it.
	once func(ctx context.Context, p *place, c contender) (sample, error)
}

// The workloads, those of work/ first: with as many threads as asked for, or one.
var workloads = []workload{
	{"alloctest-1", own("alloctest", 1)},
	{"alloctest-n", own("alloctest", 0)},
	{"asym", own("asym", 0)},
	{"barnes", own("barnes", 1)},
	{"buffers", own("buffers", 0)},
	{"churn", own("churn", 0)},
	{"espresso", own("espresso", 1)},
	{"fragment", own("fragment", 1)},
	{"growth", own("growth", 1)},
	{"large", own("large", 1)},
	{"larson", own("larson", 0)},
	{"mstress", own("mstress", 0)},
	{"peak", own("peak", 1)},
	{"rptest", own("rptest", 0)},
	{"scratch", own("scratch", 0)},
	{"sh6", own("sh6", 0)},
	{"sh8", own("sh8", 0)},
	{"simple-1", own("simple", 1)},
	{"simple-n", own("simple", 0)},
	{"tensors", own("tensors", 1)},
	{"thrash", own("thrash", 0)},
	{"xmalloc", own("xmalloc", 0)},
	{"clang", clang},
	{"clang++", clangplusplus},
	{"g++", gplusplus},
	{"gawk", awk},
	{"gcc", gcc},
	{"git", history},
	{"javac", javac},
	{"lua", lua},
	{"nginx", nginx},
	{"node", node},
	{"numpy", numpy},
	{"perl", perl},
	{"php", php},
	{"php-malloc", phpMalloc},
	{"postgres", postgres},
	{"python", python},
	{"python-malloc", pythonMalloc},
	{"redis", redis},
	{"ruby", ruby},
	{"shell", startUp},
	{"sort", sorting},
	{"sort-keys", sortingKeys},
	{"sqlite", sqlite},
	{"torch", torch},
}

// own is a program of work/ with so many threads (0: as many as asked for).
func own(name string, threads int) func(*place) (job, error) {
	return func(p *place) (job, error) {
		program, err := p.compile(name)
		n := threads
		if n == 0 {
			n = p.threads
		}
		return job{args: []string{program, strconv.Itoa(n), strconv.Itoa(p.scale),
			strconv.Itoa(p.rest)}, own: true}, err
	}
}

func names(list []workload) string {
	var out []string
	for _, w := range list {
		out = append(out, w.name)
	}
	return strings.Join(out, ", ")
}

func fromWork() fs.FS {
	work, err := fs.Sub(sources, "work")
	if err != nil {
		panic(err) // the name is a constant
	}
	return work
}
