package verify

import (
	"debug/elf"
	"errors"
	"fmt"
	"os/exec"
	"sort"
	"strconv"
	"strings"
)

// Func is a function symbol. Its code is [Addr, Addr+Size).
type Func struct {
	Name string
	Addr uint64
	Size uint64
}

// Insn is one instruction in AT&T spelling. Op has no prefixes ("lock", "rep");
// Args ends before objdump's symbol and comment; Text is everything.
type Insn struct {
	Addr uint64
	Op   string
	Args string
	Text string
}

// Image is a shared library made ready for the walk.
//
//	funcs is sorted by Addr; insns is sorted by Addr and covers [text, etext)
type Image struct {
	funcs    []*Func
	named    map[string]*Func
	objects  map[uint64]elf.Symbol // data symbols that have a size, by address
	symbols  []string              // every name of .symtab
	relative map[uint64]uint64     // R_X86_64_RELATIVE: where -> what
	insns    []Insn
	text     uint64 // Go's code is [text, etext); all else is C or the linker's
	etext    uint64
}

// Load reads the library at path. It fails when the symbol table, or the
// symbols that bound Go's code, are gone: a stripped library cannot be checked.
func Load(path string) (*Image, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("%s: the verifier reads amd64 only, not %v", path, f.Machine)
	}
	img := &Image{named: map[string]*Func{}, objects: map[uint64]elf.Symbol{}}
	if err := img.readSymbols(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if img.relative, err = relativeRelocs(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := img.disassemble(path); err != nil {
		return nil, err
	}
	return img, nil
}

func (img *Image) readSymbols(f *elf.File) error {
	syms, err := f.Symbols()
	if err != nil {
		return err
	}
	for _, s := range syms {
		if s.Section == elf.SHN_UNDEF {
			continue
		}
		img.symbols = append(img.symbols, s.Name)
		// The linker's two marks are zero-sized functions at the same
		// address as a real one, so they must not become functions.
		switch s.Name {
		case "runtime.text":
			img.text = s.Value
			continue
		case "runtime.etext":
			img.etext = s.Value
			continue
		}
		switch typ := elf.ST_TYPE(s.Info); {
		case typ == elf.STT_FUNC && s.Size > 0:
			img.funcs = append(img.funcs, &Func{s.Name, s.Value, s.Size})
		case typ == elf.STT_OBJECT && s.Size > 0:
			img.objects[s.Value] = s
		}
	}
	if img.text == 0 || img.etext <= img.text {
		return errors.New("no symbols runtime.text and runtime.etext: not a Go library, or " +
			"stripped")
	}
	sort.SliceStable(img.funcs,
		func(i, j int) bool { return img.funcs[i].Addr < img.funcs[j].Addr })
	for _, fn := range img.funcs {
		img.named[fn.Name] = fn
	}
	return nil
}

// relativeRelocs reads the relocations that put an address of this library
// into its data. The file's own bytes there are zero.
func relativeRelocs(f *elf.File) (map[uint64]uint64, error) {
	m := map[uint64]uint64{}
	sec := f.Section(".rela.dyn")
	if sec == nil {
		return m, nil
	}
	data, err := sec.Data()
	if err != nil {
		return nil, err
	}
	const entry = 24 // sizeof(Elf64_Rela)
	for ; len(data) >= entry; data = data[entry:] {
		info := f.ByteOrder.Uint64(data[8:])
		if elf.R_X86_64(elf.R_TYPE64(info)) == elf.R_X86_64_RELATIVE {
			m[f.ByteOrder.Uint64(data)] = f.ByteOrder.Uint64(data[16:])
		}
	}
	return m, nil
}

func (img *Image) disassemble(path string) error {
	out, err := exec.Command("objdump", "-d", "--no-show-raw-insn", "-w",
		fmt.Sprintf("--start-address=%#x", img.text),
		fmt.Sprintf("--stop-address=%#x", img.etext), path).Output()
	if err != nil {
		return fmt.Errorf("objdump %s: %w", path, err)
	}
	for rest := string(out); rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if in, ok := parseInsn(line); ok {
			img.insns = append(img.insns, in)
		}
	}
	if len(img.insns) == 0 {
		return fmt.Errorf("objdump %s: no instructions", path)
	}
	return nil
}

// prefixes are the words that objdump puts before the operation. The segment
// overrides fs and gs are not among them: flow.go must see those.
var prefixes = map[string]bool{
	"lock": true, "rep": true, "repz": true, "repnz": true, "bnd": true, "notrack": true,
	"data16": true, "addr32": true, "cs": true, "ds": true, "es": true, "ss": true,
	"rex": true, "rex.W": true, "xacquire": true, "xrelease": true,
}

// parseInsn reads a line of the form "  b2ea4:\tjbe    b2ee1 <name+0x41>".
func parseInsn(line string) (Insn, bool) {
	head, text, ok := strings.Cut(line, ":\t")
	if !ok {
		return Insn{}, false
	}
	addr, err := strconv.ParseUint(strings.TrimSpace(head), 16, 64)
	if err != nil {
		return Insn{}, false
	}
	in := Insn{Addr: addr, Text: strings.TrimSpace(text)}
	args := in.Text
	for {
		in.Op, args, _ = strings.Cut(args, " ")
		args = strings.TrimLeft(args, " ")
		if !prefixes[in.Op] || args == "" {
			break
		}
	}
	args, _, _ = strings.Cut(args, " #")
	args, _, _ = strings.Cut(args, " <")
	in.Args = strings.TrimSpace(args)
	return in, true
}

// code is the instructions of fn.
func (img *Image) code(fn *Func) []Insn {
	at := func(addr uint64) int {
		return sort.Search(len(img.insns), func(i int) bool { return img.insns[i].Addr >= addr })
	}
	return img.insns[at(fn.Addr):at(fn.Addr+fn.Size)]
}

// funcAt is the Go function that holds addr, or nil: C, a PLT stub, padding.
func (img *Image) funcAt(addr uint64) *Func {
	if addr < img.text || addr >= img.etext {
		return nil
	}
	// Of several symbols at one address the first of the file wins.
	i := sort.Search(len(img.funcs), func(i int) bool { return img.funcs[i].Addr > addr })
	for i--; i >= 0; i-- {
		if fn := img.funcs[i]; addr < fn.Addr+fn.Size {
			for i > 0 && img.funcs[i-1].Addr == fn.Addr {
				i--
			}
			return img.funcs[i]
		}
		if img.funcs[i].Addr < addr {
			return nil
		}
	}
	return nil
}
