package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// systemFile is the file of settings for the whole system, as the library reads it.
type systemFile struct {
	path  string
	lines environ // NAME=value, and malformed lines
	why   string  // why the whole file is ignored
}

// readSystemFile reads the file at path. One that does not exist is empty.
func readSystemFile(path string) *systemFile {
	f := &systemFile{path: path}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return f
	}
	if err != nil {
		f.why = "it cannot be opened: " + err.Error()
		return f
	}
	m := config.ReadFile(uintptr(fd), 0, false)
	defer m.Drop()
	f.why = flawText(m.Flaw)
	for at := m.Envp; at != 0 && raw.Load(at) != 0; at += 8 {
		var text []byte
		for p := raw.Load(at); raw.LoadByte(p) != 0; p++ {
			text = append(text, raw.LoadByte(p))
		}
		f.lines = append(f.lines, string(text))
	}
	return f
}

func flawText(flaw config.FileFlaw) string {
	switch flaw {
	case config.FileNotRegular:
		return "it is not a regular file"
	case config.FileOwner:
		return "it does not belong to root"
	case config.FileWritable:
		return "others than root can write to it"
	case config.FileTooBig:
		return fmt.Sprintf("it is larger than %s", size(config.FileMax))
	case config.FileNotText:
		return "there is a zero byte in it"
	case config.FileUnread:
		return "it cannot be read"
	}
	return ""
}

// withFile returns the environment with the file's settings added for names that it does not have.
// A name with an empty value counts as present, as for the library.
func (e environ) withFile(f *systemFile) environ {
	out, known := slices.Clone(e), settingNames()
	for _, line := range f.lines {
		name, _, ok := strings.Cut(line, "=")
		if ok && slices.Contains(known, name) && !slices.ContainsFunc(out,
			func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			out = append(out, line)
		}
	}
	return out
}

// misread adds the lines of the file that the library does not understand to the check.
func (f *systemFile) misread(c *configCheck) {
	var names environ
	for _, line := range f.lines {
		switch name, _, ok := strings.Cut(line, "="); {
		case !ok:
			c.mistakes = append(c.mistakes, mistake{name: f.path,
				text: fmt.Sprintf("%s: %q: expected NAME=value", f.path, line)})
		case !strings.HasPrefix(name, prefix):
			c.strange = append(c.strange, name+" in "+f.path)
		default:
			names = append(names, line)
		}
	}
	c.checkNames(names)
}

// told says that the file is read, or why it is ignored.
func (f *systemFile) told() []string {
	switch {
	case f.why != "":
		return []string{f.path + " is ignored: " + f.why}
	case len(f.lines) > 0:
		return []string{f.path +
			": every program with the library reads it; the environment has precedence"}
	}
	return nil
}

// serves reports whether TA_ONLY lets the library serve a program whose file has these names.
func (e environ) serves(paths ...string) (ok bool) {
	e.vector(func(envp uintptr) {
		var pin runtime.Pinner
		defer pin.Unpin()
		ok = !config.Only(envp)
		for _, path := range paths {
			ok = ok || config.OnlyNames(envp, cString(&pin, path))
		}
	})
	return ok
}

// running returns the file that is executed when the one at path is started: a script's
// interpreter, and the target of a link.
func running(path string) string {
	if real := interpreter(path); real != "" {
		path = real
	}
	real, _ := filepath.EvalSymlinks(path)
	return real
}

const notNamed = "TA_ONLY does not name it"
