package heat

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestResidency: what was written is resident, by the scan and by the entries of pagemap; what was
// only mapped is not, and neither is what lies between regions.
func TestResidency(t *testing.T) {
	const n = 64
	mem, err := unix.Mmap(-1, 0, n*pageBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	at := uintptr(unsafe.Pointer(&mem[0]))
	page := func(from, to uintptr) Range { return Range{at + from*pageBytes, at + to*pageBytes} }
	for _, i := range []int{0, 3, 4, 5, 20, 40, 41} {
		mem[i*pageBytes] = 1
	}
	regions := []Range{page(0, 4), page(4, 8), page(8, 16), page(32, 64)}
	for _, read := range []bool{false, true} {
		s, got := Residency{read: read}, []uint64{9, 9, 9, 9}
		if err := s.Count(regions, got); err != nil {
			t.Fatal(err)
		}
		for i, want := range []uint64{2, 2, 0, 2} {
			if got[i] != want*pageBytes {
				t.Errorf("read %v: region %d has %d bytes", read, i, got[i])
			}
		}
	}
	if err := PageOut(page(16, 32)); err != nil {
		t.Error(err)
	}
	if err := unix.Mlock(mem[:4*pageBytes]); err != nil {
		t.Skipf("mlock: %v", err)
	}
	if err := PageOut(page(0, 4)); err != unix.EINVAL {
		t.Errorf("locked memory: %v", err)
	}
}

// TestAnonymous: what a process has grows with what it writes.
func TestAnonymous(t *testing.T) {
	before, err := Anonymous()
	if err != nil {
		t.Fatal(err)
	}
	const n = 64 << 20
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	after, err := Anonymous()
	if err != nil || after < before+n*7/8 {
		t.Errorf("%d, then %d: %v", before, after, err)
	}
}

func BenchmarkResidency(b *testing.B) {
	const n = 1 << 30
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	for i := 0; i < n; i += pageBytes {
		mem[i] = 1
	}
	at := uintptr(unsafe.Pointer(&mem[0]))
	regions, got := []Range{{at, at + n}}, []uint64{0}
	for name, read := range map[string]bool{"scan": false, "entries": true} {
		b.Run(name, func(b *testing.B) {
			s := Residency{read: read}
			for range b.N {
				if err := s.Count(regions, got); err != nil || got[0] != n {
					b.Fatalf("%d bytes: %v", got[0], err)
				}
			}
		})
	}
	b.Run("statm", func(b *testing.B) {
		for range b.N {
			if _, err := Anonymous(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
