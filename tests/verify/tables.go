package verify

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	tableJump = regexp.MustCompile(`^\*\((%\w+),%\w+,8\)$`)
	tableLoad = regexp.MustCompile(`# ([0-9a-f]+) <`)
)

// jumpTable proves that the last instruction of code jumps through a table of
// the compiler's, and returns the table's entries. Go compiles a dense switch to
//
//	lea  F.jump3(%rip),%rax
//	jmp  *(%rax,%rcx,8)
//
// where F.jump3 is read-only data filled by one relocation per entry. So the
// jump stays in F when (1) the base register was last set by such a lea, (2) the
// symbol there is F.jumpN and (3) each of its words is relocated to a place in F.
// The index is trusted: the compiler has compared it just before.
func jumpTable(img *Image, fn *Func, code []Insn) ([]uint64, error) {
	last := code[len(code)-1]
	m := tableJump.FindStringSubmatch(last.Args)
	if m == nil {
		return nil, errors.New("not the form of a jump table")
	}
	table, err := lastLoad(code[:len(code)-1], m[1])
	if err != nil {
		return nil, err
	}
	sym, ok := img.objects[table]
	rest, named := strings.CutPrefix(sym.Name, fn.Name+".jump")
	if _, err := strconv.Atoi(rest); !ok || !named || err != nil {
		return nil, fmt.Errorf("no jump table of the function at %#x", table)
	}
	var targets []uint64
	for at := table; at < table+sym.Size; at += 8 {
		t, ok := img.relative[at]
		if !ok || t < fn.Addr || t >= fn.Addr+fn.Size {
			return nil, fmt.Errorf("entry %d of %s lies outside the function", (at-table)/8,
				sym.Name)
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// lastLoad finds, going up, the lea that sets reg, and returns its address.
func lastLoad(code []Insn, reg string) (uint64, error) {
	for i := len(code) - 1; i >= 0; i-- {
		in := code[i]
		if !strings.HasSuffix(in.Args, ","+reg) || in.Op == "cmp" || in.Op == "test" {
			continue
		}
		m := tableLoad.FindStringSubmatch(in.Text)
		if in.Op != "lea" || !strings.Contains(in.Args, "(%rip)") || m == nil {
			break
		}
		return strconv.ParseUint(m[1], 16, 64)
	}
	return 0, fmt.Errorf("%s is not loaded with a table's address", reg)
}
