package live

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tieralloc/stats"
)

func TestParseMapping(t *testing.T) {
	const from = 0x7f0000000000
	span := func(bytes uintptr) string { return fmt.Sprintf("%x-%x", from, from+bytes) }
	whole := span(stats.LiveSize)
	for line, want := range map[string]mapping{
		whole + " rw-s 00000000 00:19 77 /dev/shm/a page (deleted)\n": {from,
			from + uint64(stats.LiveSize), 77, "/dev/shm/a page (deleted)"},
		whole + " rw-p 00000000 00:19 77 /dev/shm/a":                     {},
		whole + " r--s 00000000 00:19 77 /dev/shm/a":                     {},
		whole + " rw-s 00001000 00:19 77 /dev/shm/a":                     {},
		whole + " rw-s 00000000 00:19 x7 /dev/shm/a":                     {},
		whole + " rw-s 00000000 00:01 77 anon_inode:[io_uring]":          {},
		span(stats.LiveSize-4096) + " rw-s 00000000 00:19 77 /dev/shm/a": {},
		span(stats.LiveSize+4096) + " rw-s 00000000 00:19 77 /dev/shm/a": {},
		" rw-s 00000000 ": {},
		"":                {},
	} {
		got, ok := parseMapping([]byte(line))
		if ok != (want != mapping{}) || ok && got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}

// mapFileSo maps a new file, and unmaps it at the test's end.
func mapFileSo(t *testing.T, path string, offset int64, size, rights, flags int) (at uint64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(offset + int64(size)); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(int(file.Fd()), offset, size, rights, flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return uint64(uintptr(unsafe.Pointer(&mem[0])))
}

// TestPageMappings: both ways to learn of a process's mappings find the same ones: each that may be
// of a page, also of a file that is gone, and no other.
func TestPageMappings(t *testing.T) {
	const rw, size = unix.PROT_READ | unix.PROT_WRITE, int(stats.LiveSize)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	want := []string{in("a page"), in("history"), in("gone") + " (deleted)"}
	at := []uint64{
		mapFileSo(t, want[0], 0, size, rw, unix.MAP_SHARED),
		mapFileSo(t, want[1], 0, size+int(stats.LiveHistorySize), rw, unix.MAP_SHARED),
		mapFileSo(t, in("gone"), 0, size, rw, unix.MAP_SHARED),
	}
	mapFileSo(t, in("private"), 0, size, rw, unix.MAP_PRIVATE)
	mapFileSo(t, in("read only"), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	mapFileSo(t, in("code"), 0, size, rw|unix.PROT_EXEC, unix.MAP_SHARED)
	mapFileSo(t, in("second"), 4096, size, rw, unix.MAP_SHARED)
	mapFileSo(t, in("short"), 0, size-4096, rw, unix.MAP_SHARED)
	mapFileSo(t, in("long"), 0, size+4096, rw, unix.MAP_SHARED)
	os.Remove(in("gone"))
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	for name, find := range map[string]func(func(mapping) bool) bool{
		"by queries": func(use func(mapping) bool) bool { return askMappings(int(maps.Fd()), use) },
		"by text": func(use func(mapping) bool) bool {
			readMappings(descriptor(maps.Fd()), use)
			return true
		},
	} {
		var found []string
		if !find(func(m mapping) bool {
			if !strings.HasPrefix(m.path, dir) {
				return true
			}
			found = append(found, m.path)
			i := slices.Index(want, m.path)
			var st unix.Stat_t
			unix.Stat(m.path, &st) // of the file that is gone: 0
			if i < 0 || m.from != at[i] || !isSize(m.to-m.from) ||
				st.Ino != 0 && m.inode != st.Ino {
				t.Errorf("%s: %+v", name, m)
			}
			return true
		}) {
			t.Logf("%s: not on this kernel", name)
			continue
		}
		slices.Sort(found)
		if !slices.Equal(found, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: %q", name, found)
		}
		calls := 0
		find(func(mapping) bool { calls++; return false })
		if calls != 1 && name == "by queries" {
			t.Errorf("%s: %d calls, although the first wanted no more", name, calls)
		}
	}
	if file, _ := os.Open(want[0]); askMappings(int(file.Fd()), nil) {
		t.Error("a file that is no list of mappings answered")
	}
	number := 0
	pageMappings(fmt.Sprintf("/proc/%d", 1<<30), func(mapping) bool { number++; return true })
	if number != 0 {
		t.Error("a process that is not has mappings")
	}
}
