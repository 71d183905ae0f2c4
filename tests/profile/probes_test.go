package profile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/testlib"
)

// probe is what a note of the library says of a probe.
type probe struct {
	place, base, semaphore uint64
	arguments              string
}

// probes reads the notes of a library as a tracer does: in version 3 of SystemTap's format.
func probes(f *elf.File) (map[string]probe, error) {
	s := f.Section(".note.stapsdt")
	if s == nil || s.Type != elf.SHT_NOTE {
		return nil, errors.New("no notes of probes")
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	found := map[string]probe{}
	word := binary.LittleEndian
	up := func(n uint32) uint32 { return (n + 3) &^ 3 }
	for len(data) >= 12 {
		nameBytes, size, kind := word.Uint32(data), word.Uint32(data[4:]), word.Uint32(data[8:])
		if uint64(len(data)) < 12+uint64(up(nameBytes))+uint64(up(size)) || size < 24 {
			return nil, fmt.Errorf("a note of %d bytes, %d are left", size, len(data))
		}
		owner, text := string(data[12:12+nameBytes]), data[12+up(nameBytes):][:size]
		texts := strings.Split(string(text[24:]), "\x00")
		if owner != "stapsdt\x00" || kind != 3 || len(texts) != 4 || texts[0] != "otel_memory" {
			return nil, fmt.Errorf("a note of %q, type %d, %q", owner, kind, texts)
		}
		found[texts[1]] = probe{word.Uint64(text), word.Uint64(text[8:]), word.Uint64(text[16:]),
			texts[2]}
		data = data[12+up(nameBytes)+up(size):]
	}
	return found, nil
}

// inFile returns the place in the file of what is at an address, as the kernel wants it.
func inFile(f *elf.File, addr uint64, flags elf.ProgFlag) (uint64, error) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags == flags && addr >= p.Vaddr &&
			addr < p.Vaddr+p.Filesz {
			return addr - p.Vaddr + p.Off, nil
		}
	}
	return 0, fmt.Errorf("no segment of the file has %#x with %v", addr, flags)
}

func openLibrary(t *testing.T, path string) (*elf.File, map[string]probe) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	list, err := probes(f)
	if err != nil {
		t.Fatal(err)
	}
	return f, list
}

// TestProbeNotes: the library, as it was built and without symbols, has two probes. Each is a nop.
// Its semaphore has a place in the file and stays writable.
func TestProbeNotes(t *testing.T) {
	testlib.Need(t, "strip")
	stripped := filepath.Join(t.TempDir(), "stripped.so")
	if out, err := exec.Command("strip", "--strip-unneeded", "-o", stripped,
		testlib.Lib(t)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, path := range []string{testlib.Lib(t), stripped} {
		f, list := openLibrary(t, path)
		want := map[string]string{"alloc": "8@%rax 8@%rbx 8@%rcx", "free": "8@%rax"}
		if len(list) != len(want) || list["alloc"].semaphore == list["free"].semaphore {
			t.Errorf("%s: probes %+v", path, list)
		}
		for name, arguments := range want {
			p := list[name]
			if p.arguments != arguments {
				t.Errorf("%s: arguments %q", name, p.arguments)
			}
			checkProbe(t, f, name, p)
		}
	}
}

func checkProbe(t *testing.T, f *elf.File, name string, p probe) {
	t.Helper()
	base, semaphores := f.Section(".stapsdt.base"), f.Section(".probes")
	if base == nil || base.Addr != p.base {
		t.Errorf("%s: base %#x, but the section is %+v", name, p.base, base)
	}
	if semaphores == nil || p.semaphore < semaphores.Addr ||
		p.semaphore+2 > semaphores.Addr+semaphores.Size || p.semaphore%2 != 0 {
		t.Fatalf("%s: semaphore at %#x, not within %+v", name, p.semaphore, semaphores)
	}
	for _, s := range f.Progs {
		if s.Type == elf.PT_GNU_RELRO && p.semaphore >= s.Vaddr && p.semaphore < s.Vaddr+s.Memsz {
			t.Errorf("%s: the loader makes the semaphore at %#x read-only", name, p.semaphore)
		}
	}
	var s, c [2]byte
	if at, err := inFile(f, p.semaphore, elf.PF_R|elf.PF_W); err != nil {
		t.Errorf("%s: %v", name, err)
	} else if _, err := semaphores.ReadAt(s[:], int64(at-semaphores.Offset)); err != nil ||
		s != [2]byte{} {
		t.Errorf("%s: the semaphore begins with %v: %v", name, s, err)
	}
	for _, text := range f.Sections {
		if text.Flags&elf.SHF_EXECINSTR == 0 || p.place < text.Addr ||
			p.place >= text.Addr+text.Size {
			continue
		}
		if base != nil && base.Addr-base.Offset != text.Addr-text.Offset {
			t.Errorf("%s: perf takes the probe to be elsewhere in the file", name)
		}
		if _, err := text.ReadAt(c[:], int64(p.place-text.Addr)); err != nil ||
			c != [2]byte{0x90, 0xc3} {
			t.Errorf("%s: % x at %#x: %v", name, c, p.place, err)
		}
		return
	}
	t.Errorf("%s: no code at %#x", name, p.place)
}

// hit is a probe that a tracer has seen.
type hit struct {
	probe                string
	addr, size, weighted uint64
}

const probeRate = 64 << 10

// step is what the program has done: a realloc of the block at was to one at is, with 0 for none.
type step struct{ was, is, size uint64 }

func readSteps(t *testing.T, path string) (list []step) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var s step
		if _, err := fmt.Sscan(line, &s.was, &s.is, &s.size); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, s)
	}
	if len(list) < 6000 {
		t.Fatalf("the program took %d steps", len(list))
	}
	return list
}

// compare holds what a tracer saw to what the program did: each hit belongs to a step, in order,
// and each free of a block whose alloc was seen is seen. The few blocks that libc itself may have
// allocated count as others.
func compare(t *testing.T, hits []hit, steps []step) {
	t.Helper()
	known := map[uint64]bool{}
	for _, s := range steps {
		known[s.was], known[s.is] = true, true
	}
	all := len(hits)
	hits = slices.DeleteFunc(slices.Clone(hits), func(h hit) bool { return !known[h.addr] })
	if others := all - len(hits); others > 5 {
		t.Errorf("%d hits have addresses that the program does not know", others)
	}
	next := func(probe string, addr uint64) bool {
		return len(hits) > 0 && hits[0].probe == probe && hits[0].addr == addr
	}
	live, allocs, frees := map[uint64]bool{}, 0, 0
	for i, s := range steps {
		freed := false
		for range 2 { // a realloc that copies allocates before it frees
			if s.was != 0 && live[s.was] && !freed && next("free", s.was) {
				freed = true
				delete(live, s.was)
				hits = hits[1:]
				frees++
			}
			// the next hit may be of a later block at the address
			if s.is != 0 && next("alloc", s.is) && hits[0].size == s.size {
				h := hits[0]
				unit := float64(sizeclass.Rounded(uintptr(s.size)))
				w := float64(s.size) / -math.Expm1(-unit/probeRate)
				if math.Abs(w-float64(h.weighted)) > 1 {
					t.Errorf("step %d: %+v, but %d bytes stand for %f", i, h, s.size, w)
				}
				live[s.is] = true
				hits = hits[1:]
				allocs++
			}
		}
		if s.was != s.is && live[s.was] {
			t.Fatalf("step %d: the free of %#x was not seen", i, s.was)
		}
	}
	if len(hits) > 0 {
		t.Errorf("%d hits are not what the program did, from %+v on", len(hits), hits[0])
	}
	if allocs < 200 || frees < 200 {
		t.Errorf("%d allocs and %d frees were seen", allocs, frees)
	}
}

// compareProfile holds the hits of a whole process to the profile that it left.
func compareProfile(t *testing.T, hits []hit, p taken) {
	t.Helper()
	var allocs, weighted, want int64
	for _, h := range hits {
		if h.probe == "alloc" {
			allocs++
			weighted += int64(h.weighted)
		}
	}
	if n := p.comment(t, "samples"); int64(n) != allocs {
		t.Errorf("%d samples, %d hits of alloc", n, allocs)
	}
	space := p.value(t, "alloc_space")
	for _, s := range p.Sample {
		want += s.Value[space]
	}
	if d := weighted - want; max(d, -d) > allocs+int64(len(p.Sample)) { // each is rounded
		t.Errorf("the hits stand for %d bytes, the profile has %d", weighted, want)
	}
	t.Logf("%d hits of alloc of %d, for %d bytes", allocs, len(hits), weighted)
}

// TestProbesDebugger: gdb, which knows the format and raises the semaphores, sees what the profile
// has.
func TestProbesDebugger(t *testing.T) {
	testlib.Need(t, "gdb")
	program, dir := testlib.CC(t, "probes.c"), t.TempDir()
	file, log := filepath.Join(dir, "heap.pb"), filepath.Join(dir, "steps")
	commands := filepath.Join(dir, "commands")
	if err := os.WriteFile(commands, fmt.Appendf(nil, `set breakpoint pending on
set startup-with-shell off
set confirm off
set environment LD_PRELOAD=%s
set environment TA_PROFILE=%s
set environment TA_PROFILE_RATE=%d
break -probe-stap otel_memory:alloc
commands
silent
printf "\nalloc %%lu %%lu %%lu\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
continue
end
break -probe-stap otel_memory:free
commands
silent
printf "\nfree %%lu\n", $_probe_arg0
continue
end
run
`, testlib.Lib(t), file, probeRate), 0o600); err != nil {
		t.Fatal(err)
	}
	r := testlib.Run(t, testlib.Cmd{Args: []string{"gdb", "-nx", "-batch", "-x", commands, "--args",
		program, log, "1"}, Timeout: 2 * time.Minute})
	if r.Status != 0 || !strings.Contains(r.Stdout, "exited normally") {
		t.Fatalf("gdb ended with %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}
	var hits []hit
	for line := range bytes.Lines([]byte(r.Stdout)) {
		h := hit{}
		n, _ := fmt.Sscan(string(line), &h.probe, &h.addr, &h.size, &h.weighted)
		if n == 4 && h.probe == "alloc" || n == 2 && h.probe == "free" {
			hits = append(hits, h)
		}
	}
	compare(t, hits, readSteps(t, log))
	compareProfile(t, hits, read(t, file))
}
