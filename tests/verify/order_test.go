package verify

import (
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestOrder: what every process runs or reads of the library is in three windows of 64 KiB, each
// of which the kernel makes resident as a whole, and in a segment for the symbols alone (interpose/order.ld).
// Where it has come to lie across a border, the address of .text.pad there is to change.
func TestOrder(t *testing.T) {
	const window = 64 << 10
	img, err := Load(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rela, relaSize uint64
	for tag, v := range map[elf.DynTag]*uint64{elf.DT_RELA: &rela, elf.DT_RELASZ: &relaSize} {
		values, err := f.DynValue(tag)
		if err != nil || len(values) != 1 {
			t.Fatalf("%v: %v, %v", tag, values, err)
		}
		*v = values[0]
	}
	if p := f.Progs[0]; p.Type != elf.PT_LOAD || p.Flags != elf.PF_R || p.Memsz > 16<<10 || f.Section(".dynstr").Addr >= p.Memsz {
		t.Errorf("the first segment is %v", p.ProgHeader)
	}
	// span is from the first function of one prefix to the end of the last of another.
	span := func(from, to string) (first, end uint64) {
		for _, fn := range img.funcs {
			if first == 0 && strings.HasPrefix(fn.Name, from) {
				first = fn.Addr
			}
			if strings.HasPrefix(fn.Name, to) {
				end = fn.Addr + fn.Size
			}
		}
		if first == 0 || end < first {
			t.Fatalf("no code from %s to %s", from, to)
		}
		return first, end
	}
	first, end := span("tieralloc/internal/raw.", "tieralloc/alloc.")
	last, _ := span("tieralloc/internal/process.", "tieralloc/internal/process.")
	for _, c := range []struct {
		what       string
		first, end uint64
		windows    uint64
	}{
		{"the data plane", first, end, 2},
		{"package process, the exports, HOT code, constants and the loader's relocations", last, rela + relaSize, 1},
	} {
		if n := (c.end-1)/window - c.first/window + 1; n > c.windows {
			t.Errorf("%s, at %#x to %#x, lie in %d windows, not %d", c.what, c.first, c.end, n, c.windows)
		}
	}
	// What ends a process or a thread, and what forks, is in the last of these as well; and the variables of C
	// that every process writes are on the page of .dynamic.
	if plt := f.Section(".plt.got"); plt.Addr < last || plt.Addr >= rela {
		t.Errorf(".plt.got is at %#x", plt.Addr)
	}
	near := map[string]bool{"tag_leave": false, "tag_usable": false, "fork_prepare": false, "malloc_usable_size": false, "reallocarray": false}
	for _, fn := range img.funcs {
		if _, ok := near[fn.Name]; ok && fn.Addr >= last && fn.Addr < rela {
			near[fn.Name] = true
		}
	}
	for name, ok := range near {
		if !ok {
			t.Errorf("%s is not before .rela.dyn", name)
		}
	}
	if d, b := f.Section(".dynamic"), f.Section(".bss.near"); b == nil || b.Size < 256 || (b.Addr+b.Size-1)/(4<<10) != d.Addr/(4<<10) {
		t.Errorf(".dynamic is at %#x, .bss.near %+v", d.Addr, b)
	}
}

// TestLoaderWrites: the loader writes to three memory pages of the library's data in each process, besides
// the one where .bss begins, and reads its own table on that one (a page that is read first has 64 KiB
// resident around it).
func TestLoaderWrites(t *testing.T) {
	const page = 4 << 10
	f, err := elf.Open(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.DynValue(elf.DT_RELASZ)
	if err != nil {
		t.Fatal(err)
	}
	table, err := f.Section(".rela.dyn").Data()
	if err != nil {
		t.Fatal(err)
	}
	pages := map[uint64]int{}
	for at := uint64(0); at < size[0]; at += 24 {
		pages[binary.LittleEndian.Uint64(table[at:])/page]++
	}
	if len(pages) != 3 {
		t.Errorf("relocations by page: %#v", pages)
	}
	dynamic, bss := f.Section(".dynamic"), f.Section(".bss")
	if dynamic.Addr%page != 0 || bss.Addr/page != dynamic.Addr/page {
		t.Errorf(".dynamic is at %#x, .bss at %#x", dynamic.Addr, bss.Addr)
	}
}
