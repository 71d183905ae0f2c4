package verify

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/testlib"
)

// what the kernel makes resident around each place of a file that is touched
const window = 64 << 10

// TestOrder: the library has two segments without a hole between them, and what every process runs
// or reads of the first one is in its first two windows (interpose/order.ld).
func TestOrder(t *testing.T) {
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
	var loads []elf.ProgHeader
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			loads = append(loads, p.ProgHeader)
		}
	}
	if len(loads) != 2 || loads[0].Vaddr != 0 || loads[0].Flags != elf.PF_R|elf.PF_X ||
		(loads[0].Filesz-1)>>12+1 != loads[1].Vaddr>>12 {
		t.Fatalf("the segments are %+v", loads)
	}
	near, copies := f.Section(".text.near"), f.Section(".text.copies")
	if end := rela + relaSize; end > 2*window || copies.Addr > near.Addr ||
		copies.Addr < f.Section(".dynstr").Addr {
		t.Errorf("copies of functions begin at %#x, C's code begins at %#x, the loader's "+
			"relocations end at %#x: not in two windows", copies.Addr, near.Addr, end)
	}
	for _, name := range []string{".plt.got", ".rodata.near"} {
		if s := f.Section(name); s.Addr < near.Addr || s.Addr >= rela {
			t.Errorf("%s is at %#x", name, s.Addr)
		}
	}
	// What ends a process or a thread, and what forks, is there as well; and the variables of C
	// that every process writes are on the page of .dynamic.
	for _, name := range []string{"malloc", "free", "ta_go_leave", "ta_go_usable", "fork_prepare",
		"malloc_usable_size", "reallocarray"} {
		if fn := img.named[name]; fn == nil || fn.Addr < near.Addr || fn.Addr >= rela {
			t.Errorf("%s is not in .text.near", name)
		}
	}
	d, b := f.Section(".dynamic"), f.Section(".data.near")
	for at, o := range img.objects {
		switch o.Name {
		case "libc_symbols", "ta_own", "ta_next_table", "tables_made":
			if !onePage(d.Addr, at+o.Size) {
				t.Errorf("%s is at %#x, .dynamic at %#x", o.Name, at, d.Addr)
			}
		}
	}
	if b.Size < 256 || !onePage(d.Addr, b.Addr+b.Size) {
		t.Errorf(".dynamic is at %#x, .data.near %+v", d.Addr, b)
	}
	if end := loads[1].Vaddr + loads[1].Filesz; end != b.Addr+b.Size {
		t.Errorf("the file's part of the data ends at %#x, behind the page of .dynamic", end)
	}
	if i, g := f.Section(".init_array"), f.Section(".got"); !onePage(i.Addr, g.Addr+g.Size) {
		t.Errorf(".init_array is at %#x, .got at %#x", i.Addr, g.Addr)
	}
	// up to the number of rules: what boot sets and reads in every process
	from, small, smallEnd := uint64(0), ^uint64(0), uint64(0)
	for at, o := range img.objects {
		switch o.Name {
		case "tieralloc/internal/config.InForce":
			from = at
		case "vdso_clock", "tieralloc/alloc.poolLock", "tieralloc/alloc.placements",
			"tieralloc/internal/process.tierMap", "tieralloc/tiers.policy",
			"tieralloc/tiers.accounts", "tieralloc/tiers.stakes":
			small, smallEnd = min(small, at), max(smallEnd, at+o.Size)
		}
	}
	if smallEnd == 0 || smallEnd>>12-small>>12 > 1 {
		t.Errorf("the small variables that boot writes are at %#x to %#x: change the start of "+
			".noptrbss (order.ld)", small, smallEnd)
	}
	if to := from + uint64(unsafe.Offsetof(config.InForce.Rules)) + 8; from == 0 || !onePage(from, to) {
		t.Errorf("the settings are at %#x to %#x: change the start of .noptrbss (order.ld)", from,
			to)
	}
}

// onePage reports whether the bytes of [from, to) are on one memory page.
func onePage(from, to uint64) bool {
	const page = 4 << 10
	return from/page == (to-1)/page
}

// TestHot: of Go's functions small programs run the copies alone (internal/postlink).
func TestHot(t *testing.T) {
	testlib.Need(t, "valgrind", "bash", "sort")
	img, err := Load(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Repeat("a few words\n", 20000)
	built := func(name string) string {
		out := filepath.Join(t.TempDir(), name)
		if text, err := exec.Command("gcc", "-O1", "-pthread", "-o", out,
			filepath.Join("..", "bench", "cpu", "work", name+".c")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return out
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"bash", []string{"bash", "-c", "for i in 1 2 3; do echo $i; done"}},
		{"fork", []string{"bash", "-c", "(exit 3)"}},
		{"sort", []string{"sort", "--parallel=2", "-S1M"}},
		{"xmalloc", []string{built("xmalloc"), "2", "10", "0"}}, // threads free each other's blocks
		{"espresso", []string{built("espresso"), "1", "5", "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "callgrind.out")
			cmd := exec.Command("valgrind", append([]string{"--tool=callgrind",
				"--compress-strings=no", "--callgrind-out-file=" + out + ".%p"}, c.args...)...)
			cmd.Stdin = strings.NewReader(lines)
			// However long they take here, nothing is purged, as in a short life. To read that
			// setting takes functions that are not hot.
			cmd.Env = append(os.Environ(), "LD_PRELOAD="+testlib.Lib(t), "TA_PURGE_DELAY=3600s")
			if text, err := cmd.CombinedOutput(); err != nil &&
				!strings.Contains(err.Error(), "exit status 3") {
				t.Fatalf("%v\n%s", err, text)
			}
			var ran strings.Builder // by the process and those that it forked
			files, err := filepath.Glob(out + ".*")
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				ran.Write(text)
			}
			if err != nil || c.name == "fork" && len(files) != 2 {
				t.Errorf("%d processes, %v", len(files), err)
			}
			seen := map[string]bool{}
			for line := range strings.Lines(ran.String()) {
				name, ok := strings.CutPrefix(strings.TrimSpace(line), "fn=")
				name, _, _ = strings.Cut(name, "'") // which of the recursive calls
				fn := img.named[name]
				if !ok || fn == nil || seen[name] ||
					img.funcAt(fn.Addr) == nil && !strings.HasSuffix(name, ".copy") {
					continue
				}
				seen[name] = true
				if !strings.HasPrefix(name, "tieralloc/internal/config.") &&
					!strings.HasSuffix(name, ".copy") {
					t.Errorf("%s is not copied: internal/postlink/hot.txt lacks it, or there is "+
						"no room", name)
				}
			}
			if len(seen) < 40 {
				t.Errorf("it ran %d functions", len(seen))
			}
		})
	}
}

// TestLoaderWrites: the loader writes to two memory pages of the library's data in each process. It
// reads its own table on the one where the file's part ends (a page that is read first has 64 KiB
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
	dynamic := f.Section(".dynamic")
	if len(pages) != 2 || pages[dynamic.Addr/page] == 0 {
		t.Errorf("relocations by page: %#v, .dynamic is at %#x", pages, dynamic.Addr)
	}
}
