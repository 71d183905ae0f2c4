package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed work
var sources embed.FS

// place is where workloads are prepared and run: a folder of its own.
type place struct {
	dir      string
	programs string // where work/'s programs are; "": they are compiled
	root     string // the source tree
	threads  int
	scale    int // the work, in thousandths of the usual
	rest     int // milliseconds until the steady figure is taken; 0: it is not
	timed    string
}

func newPlace(root, programs string, threads, scale int) (*place, error) {
	dir, err := os.MkdirTemp("", "tieralloc-bench.")
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, programs: programs, root: root, threads: threads, scale: scale, rest: 500}
	if err = os.CopyFS(filepath.Join(dir, "work"), fromWork()); err == nil {
		p.timed, err = p.compile("timed")
	}
	if err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

func (p *place) remove() { os.RemoveAll(p.dir) }

// source is the path of a file of work/.
func (p *place) source(name string) string { return filepath.Join(p.dir, "work", name) }

// stillSuffix in the name of a program of work/ stands for its pattern alone: see work.h.
const stillSuffix = "-still"

// compile makes a program of work/ once. The compiler must not take pairs of malloc and
// free for something to leave out.
func (p *place) compile(name string) (string, error) {
	if p.programs != "" {
		return filepath.Abs(filepath.Join(p.programs, name))
	}
	out := filepath.Join(p.dir, name)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	source, still := strings.CutSuffix(name, stillSuffix)
	args := []string{"-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fno-builtin-malloc",
		"-fno-builtin-calloc", "-fno-builtin-realloc",
		"-fno-builtin-free", "-ffp-contract=off", "-pthread", "-o", out, p.source(source + ".c"),
		"-lm"}
	if still {
		args = append([]string{"-DSTILL"}, args...)
	}
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc %s.c: %w\n%s", name, err, tail(string(text)))
	}
	return out, nil
}

// keep copies a library that may be built anew while this runs. It is written in small
// pieces, as installers do: of a file that was written at once, Linux may keep 2 MiB in one
// piece, all of which counts as resident in every process that runs some of it.
func (p *place) keep(library string) (string, error) {
	in, err := os.Open(library)
	if err != nil {
		return "", err
	}
	defer in.Close()
	path := filepath.Join(p.dir, filepath.Base(library))
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	// Not by the files' own methods, which hand the whole to the kernel.
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 4096))
	return path, errors.Join(err, out.Close())
}

// scaled is n at the usual scale; at least 1.
func (p *place) scaled(n int) int { return max(1, n*p.scale/1000) }

func (p *place) text(n int) string { return strconv.Itoa(p.scaled(n)) }

// write makes a file in the place's folder.
func (p *place) write(name string, content []byte) (string, error) {
	path := filepath.Join(p.dir, name)
	return path, os.WriteFile(path, content, 0o600)
}

// program finds an installed one; the system's own is preferred, for what comes first in
// PATH may be a script that starts it.
func program(names ...string) (string, error) {
	for _, name := range names {
		path := filepath.Join("/usr/bin", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", lacking(names[0])
}

// lacking is what is not on this machine.
type lacking string

func (l lacking) Error() string { return "there is no " + string(l) }
