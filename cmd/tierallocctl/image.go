package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// An image is a program that a process has turned into by exec.
type image struct {
	pid     int
	path    string
	library string // that LD_PRELOAD is to name
	environ environ
	aux     map[uint64]uint64 // what the kernel has told it, by AT_ number
	entry   []byte            // what the breakpoint replaces
	unfit   string            // why the library does not serve it
	objects []fileID          // that the loader had loaded when it handed over
	later   []string          // those with malloc that were loaded after that
}

// fileID tells a file from all others.
type fileID struct{ dev, ino uint64 }

const (
	atPhdr   = 3
	atPhnum  = 5
	atEntry  = 9
	atSecure = 23
)

// newImage looks at what a process has turned into, before it runs.
func newImage(pid int, library string) *image {
	i := &image{pid: pid, library: library, aux: map[uint64]uint64{}}
	i.path, _ = os.Readlink(i.proc("exe"))
	text, _ := os.ReadFile(i.proc("environ"))
	i.environ = strings.FieldsFunc(string(text), func(c rune) bool { return c == 0 })
	vector, _ := os.ReadFile(i.proc("auxv"))
	for ; len(vector) >= 16; vector = vector[16:] {
		i.aux[binary.LittleEndian.Uint64(vector)] = binary.LittleEndian.Uint64(vector[8:])
	}
	return i
}

// proc names a file of the process in /proc.
func (i *image) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", i.pid, name) }

// arm places a breakpoint where the loader hands over to the program, and says whether it did: not
// in a program that the library cannot get into.
func (i *image) arm() bool {
	if i.unfit = unreachable(i.proc("exe")); i.unfit != "" {
		return false
	}
	if i.aux[atSecure] != 0 {
		i.unfit = "it runs with more rights than its caller: the loader ignores LD_PRELOAD"
		return false
	}
	const trap = 0xcc // int3
	entry := uintptr(i.aux[atEntry])
	i.entry = make([]byte, 1)
	_, err := unix.PtracePeekText(i.pid, entry, i.entry)
	if err == nil {
		_, err = unix.PtracePokeText(i.pid, entry, []byte{trap})
	}
	if err != nil {
		i.unfit = "it cannot be looked into: " + err.Error()
		return false
	}
	i.unfit = "it ended before the loader had handed over to it"
	return true
}

// arrived says whether the process has come to the breakpoint, and if so, takes it away and looks
// at what is loaded.
func (i *image) arrived(pid int) bool {
	var r unix.PtraceRegs
	entry := i.aux[atEntry]
	if unix.PtraceGetRegs(pid, &r) != nil || r.PC() != entry+1 {
		return false
	}
	r.SetPC(entry)
	if _, err := unix.PtracePokeText(pid, uintptr(entry), i.entry); err != nil {
		return false
	}
	if unix.PtraceSetRegs(pid, &r) != nil {
		return false
	}
	if pid == i.pid { // not a process that it forked on the way
		i.judge()
	}
	return true
}

// judge finds the object whose malloc the program uses: the first that has one, in the loader's
// order.
func (i *image) judge() {
	names, err := i.loaded()
	if err != nil {
		i.unfit = "it cannot be looked into: " + err.Error()
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

func (e environ) is(name, value string) bool {
	v, _ := e.get(name)
	return v == value
}

// whyNotLoaded says why the loader has not loaded the library into a program that it could get
// into.
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
			return "there is no " + i.library + " where it looks for files"
		}
	}
	return "the loader has ignored " + i.library + ": it cannot be preloaded here"
}

// file is the name by which this process finds a file of the other. The program itself has no name.
func (i *image) file(name string) string {
	switch {
	case name == "":
		return i.proc("exe")
	case filepath.IsAbs(name):
		return i.proc("root") + name
	}
	return i.proc("cwd/" + name)
}

// ends looks once more, when the process is about to end.
func (i *image) ends() {
	if i.unfit != "" {
		return
	}
	text, _ := os.ReadFile(i.proc("maps"))
	expected := map[fileID]int{}
	for _, id := range i.objects {
		expected[id]++
	}
	for line := range strings.Lines(string(text)) {
		// 7f0000000000-7f0000001000 r--p 00000000 fe:00 1234    /usr/lib/libx.so
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[2] != "00000000" || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		o := lookAt(fields[5])
		expected[o.id]--
		// once more than there were: a namespace of dlmopen has its own libc
		if o.malloc && expected[o.id] == -1 {
			i.later = append(i.later, fields[5])
		}
	}
}

func (i *image) served() bool { return i.unfit == "" }

// allocator says who serves the program.
func (i *image) allocator() string {
	if i.unfit != "" {
		return "another: " + i.unfit
	}
	text := "tieralloc"
	for _, name := range i.later {
		text += "; " + name + ", loaded later, has a malloc of its own"
	}
	return text
}

// loaded names what the loader has loaded, in the order in which it looks for symbols. It reads the
// loader's list, as debuggers do.
func (i *image) loaded() (names []string, err error) {
	memory, err := os.Open(i.proc("mem"))
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	defer func() {
		if err == nil && len(names) == 0 {
			err = errors.New("the loader's list is empty")
		}
	}()
	read := func(at uint64, data any) {
		if err == nil {
			err = binary.Read(io.NewSectionReader(memory, int64(at), 1<<20), binary.LittleEndian,
				data)
		}
	}
	headers := make([]elf.Prog64, i.aux[atPhnum]&0xffff)
	read(i.aux[atPhdr], headers)
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
	read(bias+dynamic, entries)
	var debug struct{ Version, Map uint64 }
	for _, d := range entries {
		if elf.DynTag(d.Tag) == elf.DT_DEBUG {
			read(d.Val, &debug)
		}
	}
	var object struct{ Addr, Name, Dynamic, Next uint64 }
	for at := debug.Map; at != 0 && err == nil && len(names) < 1<<14; at = object.Next {
		read(at, &object)
		if name, ok := stringAt(memory, object.Name); ok && err == nil {
			names = append(names, name)
		}
	}
	return names, err
}

// stringAt is the C string at an address of a process.
func stringAt(memory io.ReaderAt, at uint64) (string, bool) {
	buffer := make([]byte, unix.PathMax)
	n, _ := memory.ReadAt(buffer, int64(at))
	name, _, ok := bytes.Cut(buffer[:n], []byte{0})
	return string(name), ok
}
