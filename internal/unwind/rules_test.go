package unwind

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// mapFile maps the segments of an ELF file as the loader does, and returns a walk whose frame is in
// it.
func mapFile(t *testing.T, name string) *Stack {
	t.Helper()
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	end := uint64(0)
	for _, p := range f.Progs {
		end = max(end, p.Vaddr+p.Memsz)
	}
	memory, err := syscall.Mmap(-1, 0, int(end), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(memory) })
	walk, err := syscall.Mmap(-1, 0, int(unsafe.Sizeof(Stack{})),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(walk) })
	u := (*Stack)(unsafe.Pointer(&walk[0]))
	u.Start = uintptr(unsafe.Pointer(&memory[0]))
	u.End = u.Start + uintptr(end)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			if _, err := p.ReadAt(memory[p.Vaddr:p.Vaddr+p.Filesz], 0); err != nil {
				t.Fatal(err)
			}
		}
		if p.Type == elf.PT_GNU_EH_FRAME {
			u.Header = u.Start + uintptr(p.Vaddr)
		}
	}
	return u
}

// TestRules compares the rules of every row of two files' call frame information with what readelf
// reads there.
func TestRules(t *testing.T) {
	libc := "/lib/x86_64-linux-gnu/libc.so.6"
	for _, name := range []string{libc, "/usr/bin/perl"} {
		if _, err := elf.Open(name); err != nil {
			t.Logf("%v", err)
			continue
		}
		u := mapFile(t, name)
		out, err := exec.Command("readelf", "--debug-dump=frames-interp", name).Output()
		if len(out) == 0 { // its status says whether it found the debug information's file
			t.Fatalf("readelf: %v", err)
		}
		rows := 0
		var columns []string
		fde := false
		for line := range strings.Lines(string(out)) {
			words := strings.Fields(line)
			switch {
			case len(words) > 3 && strings.Contains(line, "pc="):
				fde = true
			case strings.Contains(line, " CIE "):
				fde = false
			case len(words) > 2 && words[0] == "LOC":
				columns = words
			case fde && len(words) == len(columns) && len(words) > 2 && len(words[0]) == 16:
				at, err := strconv.ParseUint(words[0], 16, 64)
				if err != nil {
					continue
				}
				rows++
				if got, ok := u.described(u.Start+uintptr(at), columns[2:]); !ok ||
					got != strings.Join(words[1:], " ") {
					t.Errorf("%s, %#x: %q, not %q", name, at, got, words[1:])
				}
			}
		}
		if t.Logf("%s: %d rows", name, rows); rows < 1000 {
			t.Errorf("%s: only %d rows", name, rows)
		}
	}
}

// names are the registers' names in readelf's table.
var names = map[string]int{"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6,
	"rsp": 7, "r8": 8, "r9": 9, "r10": 10, "r11": 11, "r12": 12, "r13": 13, "r14": 14, "r15": 15,
	"ra": rip}

// described describes the rules at pc as readelf does.
func (u *Stack) described(pc uintptr, columns []string) (text string, ok bool) {
	var d description
	if d.find(u, pc) != found || !u.rules(&d, pc) {
		return "", false
	}
	text = "exp"
	if u.row.cfaExpr.at == 0 {
		for name, n := range names {
			if uintptr(n) == u.row.cfaReg {
				text = fmt.Sprintf("%s%+d", name, int64(u.row.cfaOffset))
			}
		}
	}
	for _, c := range columns {
		r := names[c]
		switch u.row.kind[r] {
		case ruleSame, ruleUndefined:
			text += " u"
		case ruleOffset:
			text += fmt.Sprintf(" c%+d", int64(u.row.value[r]))
		case ruleExpr:
			text += " exp"
		case ruleValExpr:
			text += " vexp"
		default:
			text += " other"
		}
	}
	return text, true
}

// TestDamaged reads frame information in which each byte in turn is damaged: the walk may end, and
// must not read outside its object.
func TestDamaged(t *testing.T) {
	u := mapFile(t, "/lib/x86_64-linux-gnu/libc.so.6")
	var d description
	pc := u.Start
	for ; d.find(u, pc) != found; pc += 64 {
	}
	for at := u.Header; at < u.Header+64; at++ {
		u.damage(at, pc)
	}
	for at := d.own.at - 32; at < d.own.end; at++ {
		u.damage(at, pc)
	}
	for at := d.common.at - 24; at < d.common.end; at++ {
		u.damage(at, pc)
	}
}

func (u *Stack) damage(at, pc uintptr) {
	b := (*byte)(unsafe.Add(nil, at))
	was := *b
	for v := range 256 {
		*b = byte(v)
		var d description
		if d.find(u, pc) == found {
			u.rules(&d, pc)
		}
	}
	*b = was
}
