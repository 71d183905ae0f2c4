package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"syscall"

	"github.com/jedib0t/go-pretty/v6/table"

	"tieralloc/alloc"
	"tieralloc/internal/config"
)

// `stats --nodes` combines two sources. The kernel knows on which node each page of a mapping is.
// The heap's page map, in the process's memory, says which mappings belong to the heap, and to
// which tiers. So the figures are exact, and the process need not cooperate. The page map's address
// comes from the library file: the process must have loaded the same build.

// Rows besides those of the tiers, which have their names in reports.
const (
	// mappings with spans of several tiers, as simulated tiers may have
	rowMixed = "mixed"
	rowOwn   = "own" // the library's own memory: descriptors and the page map
)

// heapNodes are the bytes by node of each row.
type heapNodes map[string]map[int]uint64

// readHeapNodes finds out on which nodes a process's heap is. library is the file of the library.
func readHeapNodes(pid int, library string) (heapNodes, error) {
	all, err := readMappings(pid)
	if err != nil {
		return nil, err
	}
	base, err := libraryBase(pid, all, library)
	if err != nil {
		return nil, err
	}
	root, err := symbolIn(library, "ta_root")
	if err != nil {
		return nil, err
	}
	memory, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "mem"))
	if err != nil {
		return nil, procError(pid, err)
	}
	defer memory.Close()
	h := newHeapReader(memory, all)
	if _, err := memory.ReadAt(h.root, int64(base+root)); err != nil {
		return nil, procError(pid, err)
	}
	if err := h.read(); err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return h.sums(), nil
}

// libraryBase returns the address at which a process has loaded the library.
func libraryBase(pid int, all []mapping, library string) (uint64, error) {
	var own syscall.Stat_t
	if err := syscall.Stat(library, &own); err != nil {
		return 0, &os.PathError{Op: "stat", Path: library, Err: err}
	}
	other := ""
	for _, m := range all {
		switch {
		case filepath.Base(m.path) != filepath.Base(library):
		case m.inode == own.Ino:
			return m.start, nil
		default:
			other = m.path
		}
	}
	if other != "" {
		return 0, fmt.Errorf("process %d has another build of the library, %s: name it with "+
			"--library", pid, other)
	}
	return 0, fmt.Errorf("process %d runs without %s", pid, libraryName)
}

// symbolIn returns the address of a variable relative to the library's base.
func symbolIn(library, name string) (uint64, error) {
	file, err := elf.Open(library)
	if err != nil {
		return 0, fmt.Errorf("%s is not a shared library (%w)", library, err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == name {
			return s.Value, nil
		}
	}
	return 0, fmt.Errorf("%s has no symbols (strip): its heap cannot be found",
		library)
}

// heapReader finds the heap's mappings.
type heapReader struct {
	memory io.ReaderAt
	all    []mapping
	root   []byte
	rows   map[*mapping]string
	steps  uint64 // steps left; the limit is for hostile or damaged processes
}

// The reader counts steps: one for an entry of the page map, one for a mapping with a span, and
// descriptorSteps for a span's descriptor, which takes a system call.
const (
	spareSteps      = 1 << 24 // enough for the page map of 1 TiB
	descriptorSteps = 64
)

// newHeapReader allows enough steps for a heap whose descriptors are all resident.
func newHeapReader(memory io.ReaderAt, all []mapping) *heapReader {
	steps := uint64(spareSteps)
	for _, m := range all {
		for _, resident := range m.perNode {
			steps += resident / uint64(alloc.DescriptorSize) * (descriptorSteps + 1)
		}
	}
	return &heapReader{memory: memory, all: all, root: make([]byte, alloc.RootEntries*8),
		rows: map[*mapping]string{}, steps: steps}
}

// take takes n steps. It reports false if fewer are left.
func (h *heapReader) take(n uint64) bool {
	if n > h.steps {
		h.steps = 0
		return false
	}
	h.steps -= n
	return true
}

// read examines all mappings that may belong to the heap.
func (h *heapReader) read() error {
	for i := range h.all {
		if m := &h.all[i]; m.inode == 0 {
			h.look(m)
		}
	}
	if h.steps == 0 {
		return errors.New("its page map leads to more spans than it has memory for: it is " +
			"damaged, or not the library's")
	}
	return nil
}

// look notes the tiers of a mapping, and the mappings of the descriptors that the page map names.
func (h *heapReader) look(m *mapping) {
	last := uint64(0)
	for a := m.start &^ (alloc.SliceSize - 1); a < m.end; {
		i := a >> alloc.RootShift
		if i >= alloc.RootEntries {
			return
		}
		next := min((i+1)<<alloc.RootShift, (m.end+alloc.SliceSize-1)&^(alloc.SliceSize-1))
		leaf := binary.LittleEndian.Uint64(h.root[i*8:])
		at, n := leaf+a>>alloc.SliceShift%alloc.LeafEntries*8, (next-a)>>alloc.SliceShift*8
		a = next
		switch {
		case leaf == 0:
			continue
		case !h.take(n / 8):
			return
		}
		h.note(leaf, rowOwn)
		entries := make([]byte, n)
		if _, err := h.memory.ReadAt(entries, int64(at)); err != nil {
			continue // the process has ended, or this is not a page map
		}
		for ; len(entries) != 0; entries = entries[8:] {
			if p := binary.LittleEndian.Uint64(entries); p != 0 && p != last {
				last = p
				h.span(p)
			}
		}
	}
}

// span notes the mappings of the span whose descriptor is at p. A huge block has one entry in the
// page map, for its first slice. It may have several mappings and two tiers.
func (h *heapReader) span(p uint64) {
	var descriptor [alloc.DescriptorSize]byte
	if !h.take(descriptorSteps) {
		return
	}
	if _, err := h.memory.ReadAt(descriptor[:], int64(p)); err != nil {
		return
	}
	h.note(p, rowOwn)
	if at := alloc.PartMapOf(&descriptor); at != 0 {
		h.parts(&descriptor, at)
		return
	}
	start, cut, end, first, rest := alloc.Extent(&descriptor)
	h.lies(uint64(start), uint64(cut), config.TierWord(uint32(first)))
	h.lies(uint64(cut), uint64(end), config.TierWord(uint32(rest)))
}

// parts notes the mappings of a huge block whose part map is at an address.
func (h *heapReader) parts(descriptor *[alloc.DescriptorSize]byte, at uintptr) {
	var parts [alloc.PartMapBytes]byte
	if _, err := h.memory.ReadAt(parts[:], int64(at)); err != nil {
		return
	}
	for i := uintptr(0); h.take(1); i++ {
		start, n, tier := alloc.PartExtent(descriptor, &parts, i)
		if n == 0 {
			return
		}
		h.lies(uint64(start), uint64(start+n), config.TierWord(uint32(tier)))
	}
}

// lies notes that the memory from start to end belongs to a tier. The library's own memory in the
// same mapping is counted with it.
func (h *heapReader) lies(start, end uint64, row string) {
	i := sort.Search(len(h.all), func(i int) bool { return h.all[i].end > start })
	for ; i < len(h.all) && h.all[i].start < end && h.take(1); i++ {
		m := &h.all[i]
		switch before := h.rows[m]; {
		case m.inode != 0, start == end:
		case before == "", before == rowOwn, before == row:
			h.rows[m] = row
		default:
			h.rows[m] = rowMixed
		}
	}
}

// note assigns a row to the mapping of an address, unless it has one.
func (h *heapReader) note(addr uint64, row string) {
	if m := containing(h.all, addr); m != nil && m.inode == 0 && h.rows[m] == "" {
		h.rows[m] = row
	}
}

func (h *heapReader) sums() heapNodes {
	sums := heapNodes{}
	for m, row := range h.rows {
		if sums[row] == nil {
			sums[row] = map[int]uint64{}
		}
		for node, n := range m.perNode {
			sums[row][node] += n
		}
	}
	return sums
}

// showHeapNodes is stats --nodes.
func showHeapNodes(w io.Writer, name, library string, asJSON bool) error {
	pid, err := strconv.Atoi(name)
	if err != nil || pid <= 0 {
		return usage("stats --nodes needs the number of a process, not %q", name)
	}
	if library, err = findLibrary(library); err != nil {
		return err
	}
	sums, err := readHeapNodes(threadWithMemory(pid), library)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(w, map[string]any{"pid": pid, "bytes_per_node": sums})
	}
	return sums.write(w)
}

func (sums heapNodes) write(w io.Writer) error {
	found := map[int]uint64{}
	for _, row := range sums {
		maps.Copy(found, row)
	}
	nodes := slices.Sorted(maps.Keys(found))
	header := table.Row{"memory"}
	for _, node := range nodes {
		header = append(header, fmt.Sprintf(">node %d", node))
	}
	t := newTable(header...)
	rows := []string{}
	for i := range config.TierCount {
		rows = append(rows, config.TierWord(i))
	}
	for _, name := range append(rows, rowMixed, rowOwn) {
		if sums[name] == nil {
			continue
		}
		row := table.Row{name}
		for _, node := range nodes {
			row = append(row, size(sums[name][node]))
		}
		t.AppendRow(row)
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}
