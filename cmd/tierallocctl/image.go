package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tieralloc/internal/config"
)

// An image is a program that a process runs after an exec.
type image struct {
	pid     int
	path    string
	library string // the name that LD_PRELOAD is expected to contain
	environ environ
	aux     map[uint64]uint64 // its auxiliary vector, by AT_ number
	exe     string            // a path of its own file
	debug   uint64            // r_debug of a loader that was started as a program; else 0
	stop    uint64            // address of the breakpoint
	code    []byte            // the byte that the breakpoint replaces
	unknown string            // why it cannot be examined
	unfit   string            // why the library does not serve it
	objects []fileID          // loaded when the loader started the program
	later   []string          // objects with a malloc that were loaded later
}

// fileID identifies a file.
type fileID struct{ dev, ino uint64 }

const (
	atPhdr   = 3
	atPhnum  = 5
	atEntry  = 9
	atSecure = 23
	atExecfn = 31
)

// newImage examines the program of a process after an exec, before it runs.
func newImage(pid int, library string) *image {
	i := &image{pid: pid, library: library, aux: map[uint64]uint64{}}
	i.exe = i.proc("exe")
	path, err := os.Readlink(i.exe)
	i.path = path
	text, environErr := os.ReadFile(i.proc("environ"))
	i.environ = strings.FieldsFunc(string(text), func(c rune) bool { return c == 0 })
	i.environ = i.environ.withFile(readSystemFile(i.file(config.FilePath)))
	vector, auxErr := os.ReadFile(i.proc("auxv"))
	for ; len(vector) >= 16; vector = vector[16:] {
		i.aux[binary.LittleEndian.Uint64(vector)] = binary.LittleEndian.Uint64(vector[8:])
	}
	if err = errors.Join(err, environErr, auxErr); err != nil {
		i.path, i.unknown = i.firstArgument(), whyHidden(err)
	}
	return i
}

// firstArgument returns the name that the process was started by. The kernel shows it for any
// process.
func (i *image) firstArgument() string {
	text, _ := os.ReadFile(i.proc("cmdline"))
	name, _, _ := bytes.Cut(text, []byte{0})
	return string(name)
}

// whyHidden explains why the kernel does not show a process.
func whyHidden(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "its file cannot be read, so the kernel does not show what is loaded"
	}
	return unseen(err)
}

func unseen(err error) string { return "it cannot be examined: " + err.Error() }

// proc names a file of the process in /proc.
func (i *image) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", i.pid, name) }

// arm places a breakpoint where the loader starts the program, and reports whether it did. It
// places none in a program that the library cannot be loaded into.
func (i *image) arm() bool {
	if i.unknown != "" {
		return false
	}
	if i.unfit = unreachable(i.exe); i.unfit != "" {
		return false
	}
	if i.aux[atSecure] != 0 {
		i.unfit = "it runs with more rights than its caller: the loader ignores LD_PRELOAD"
		return false
	}
	stop := i.aux[atEntry]
	if state, debug := loaderSymbols(i.exe, stop); state != 0 {
		stop, i.debug = state, debug
	}
	return i.breakAt(stop)
}

// breakAt places the breakpoint, and reports whether it did.
func (i *image) breakAt(stop uint64) bool {
	const trap = 0xcc // int3
	i.stop, i.code = stop, make([]byte, 1)
	_, err := unix.PtracePeekText(i.pid, uintptr(stop), i.code)
	if err == nil {
		_, err = unix.PtracePokeText(i.pid, uintptr(stop), []byte{trap})
	}
	if err != nil {
		i.unknown = unseen(err)
		return false
	}
	i.unfit = "it ended before the loader started it"
	return true
}

// arrived reports whether a process has reached the breakpoint, and if so removes it.
func (i *image) arrived(pid int) bool {
	var r unix.PtraceRegs
	if unix.PtraceGetRegs(pid, &r) != nil || r.PC() != i.stop+1 {
		return false
	}
	r.SetPC(i.stop)
	if _, err := unix.PtracePokeText(pid, uintptr(i.stop), i.code); err != nil {
		return false
	}
	return unix.PtraceSetRegs(pid, &r) == nil
}

// advance examines the loaded objects of a process that has arrived, and reports whether it placed
// another breakpoint.
func (i *image) advance(pid int) (armed bool) {
	if pid != i.pid { // a process that it forked before
		return false
	}
	if i.debug != 0 && i.exe == i.proc("exe") {
		return i.armLoaded()
	}
	i.judge()
	return false
}

// judge finds the object whose malloc the program uses: the first with a malloc, in the loader's
// order.
func (i *image) judge() {
	names, err := i.loaded()
	if err != nil {
		i.unknown = unseen(err)
		return
	}
	var all []object
	for _, name := range names {
		all = append(all, lookAt(i.file(name)))
		i.objects = append(i.objects, all[len(all)-1].id)
	}
	first := slices.IndexFunc(all, func(o object) bool { return o.malloc })
	switch {
	case !slices.ContainsFunc(all, func(o object) bool { return o.ours }):
		i.unfit = i.whyNotLoaded()
	case i.environ.is("TA_DISABLE", "1"):
		i.unfit = "TA_DISABLE=1"
	case !i.environ.serves(i.path, i.named()):
		i.unfit = notNamed
	case i.environ.is("TA_INTERPOSE", "0"):
		i.unfit = "TA_INTERPOSE=0: malloc is libc's"
	case all[first].ours:
		i.unfit = ""
	case names[first] == "":
		i.unfit = ownMalloc
	default:
		i.unfit = names[first] + " has malloc, and is loaded before the library"
	}
}

// named returns the path that the program was started by.
func (i *image) named() string {
	memory, err := os.Open(i.proc("mem"))
	if err != nil {
		return ""
	}
	defer memory.Close()
	name, _ := stringAt(memory, i.aux[atExecfn])
	return name
}

func (e environ) is(name, value string) bool {
	v, _ := e.get(name)
	return v == value
}

// whyNotLoaded explains why the loader has not loaded the library, although it could.
func (i *image) whyNotLoaded() string {
	preload, ok := i.environ.get("LD_PRELOAD")
	switch {
	case !ok:
		return "LD_PRELOAD is not in its environment"
	case !slices.Contains(preloadNames(preload), i.library):
		return "LD_PRELOAD does not name the library: " + preload
	}
	if strings.Contains(i.library, "/") {
		if _, err := os.Stat(i.file(i.library)); err != nil {
			return "there is no " + i.library + " in its file system"
		}
	}
	return "the loader has ignored " + i.library + ": it cannot be preloaded here"
}

// file returns the path by which this process opens a file of the other. An empty name is the
// program itself.
func (i *image) file(name string) string {
	switch {
	case name == "":
		return i.exe
	case filepath.IsAbs(name):
		return i.proc("root") + name
	}
	return i.proc("cwd/" + name)
}

// ends examines the process once more when it is about to end.
func (i *image) ends() {
	if !i.served() {
		return
	}
	maps, _ := mapsOf(i.pid)
	expected := map[fileID]int{}
	for _, id := range i.objects {
		expected[id]++
	}
	for _, m := range maps {
		if m.offset != 0 || !strings.HasPrefix(m.path, "/") {
			continue
		}
		o := lookAt(m.path)
		expected[o.id]--
		// loaded once more than at the start: a namespace of dlmopen has its own libc
		if o.malloc && expected[o.id] == -1 {
			i.later = append(i.later, m.path)
		}
	}
}

func (i *image) served() bool { return i.unknown == "" && i.unfit == "" }

// allocator says which allocator serves the program.
func (i *image) allocator() string {
	if i.unknown != "" {
		return "not known: " + i.unknown
	}
	if i.unfit != "" {
		return "another: " + i.unfit
	}
	text := "tieralloc"
	for _, name := range i.later {
		text += "; " + name + ", loaded later, has a malloc of its own"
	}
	return text
}

// loaded returns the names of the loaded objects, in the loader's order of symbol lookup. It reads
// the loader's list, as debuggers do.
func (i *image) loaded() (names []string, err error) {
	m, err := i.memory()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	debug := i.debug
	if debug == 0 {
		debug = i.debugOfProgram(m)
	}
	var object linkMap
	for at := m.firstObject(debug); at != 0 && len(names) < 1<<14; at = object.Next {
		m.read(at, &object)
		if m.err != nil {
			return names, m.err
		}
		if name, ok := stringAt(m, object.Name); ok {
			names = append(names, name)
		}
	}
	if m.err == nil && len(names) == 0 {
		return nil, errors.New("the loader's list is empty")
	}
	return names, m.err
}

// debugOfProgram returns the address of the loader's r_debug, which is in the program's dynamic
// section.
func (i *image) debugOfProgram(m *processMemory) (debug uint64) {
	headers := make([]elf.Prog64, i.aux[atPhnum]&0xffff)
	m.read(i.aux[atPhdr], headers)
	var bias, dynamic, size uint64
	for _, h := range headers {
		switch elf.ProgType(h.Type) {
		case elf.PT_PHDR:
			bias = i.aux[atPhdr] - h.Vaddr
		case elf.PT_DYNAMIC:
			dynamic, size = h.Vaddr, h.Memsz
		}
	}
	entries := make([]elf.Dyn64, min(size, 1<<16)/16)
	m.read(bias+dynamic, entries)
	for _, d := range entries {
		if elf.DynTag(d.Tag) == elf.DT_DEBUG {
			debug = d.Val
		}
	}
	return debug
}
