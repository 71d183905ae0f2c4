package tiers

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tieralloc/internal/config"
	"tieralloc/internal/group"
)

// inGroup makes the caps of the tiers those of a group. The returned word is what another member,
// which lives as long as the test, has reserved of NORMAL.
func inGroup(t *testing.T) *uint64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "group")
	var want group.Wish
	for i := range want.Caps {
		a := accounts[i]
		want.Caps[i] = group.Cap{Soft: a.soft, Hard: a.hard}
	}
	if errno := group.Join(cstring(path), &want); errno != 0 {
		t.Fatal(syscall.Errno(errno))
	}
	JoinGroup()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 1, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		t.Fatal(err)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(group.Size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(data) })
	p := (*group.Page)(unsafe.Pointer(unsafe.SliceData(data)))
	p.High, p.Slots[1].Pid = 2, 1
	share := &p.Slots[1].Shares[config.TierNormal]
	// The second word of a share is what is used. Nothing is granted, so that alone counts.
	return (*uint64)(unsafe.Add(unsafe.Pointer(share), 8))
}

// TestGroupCaps: in a group, caps are those of the sum.
func TestGroupCaps(t *testing.T) {
	const mib, warm, normal = 1 << 20, uintptr(config.HintWarm), uintptr(config.TierNormal)
	setup(t, "p", "NORMAL_SOFT=100M", "NORMAL_HARD=160M", "SLOW_HARD=1M", "ON_SOFTCAP=demote")
	other := inGroup(t)
	t.Cleanup(func() { setup(t, "p") })
	if fast := uintptr(config.TierFast); Full(fast, mib) || !Admit(fast, mib) || Full(fast, mib) ||
		!Room(fast, mib) {
		t.Error("a tier without a cap is full")
	}
	reserve := func(n, want uintptr) {
		t.Helper()
		if got := Reserve(warm, n*mib, ^uintptr(0)); got != want {
			t.Errorf("%d MiB beside %d: %d, not %d", n, *other/mib, got, want)
		}
	}
	reserve(60, normal)
	if e, room := Excess(normal), Room(normal, 27*mib); e != 0 || !room {
		t.Errorf("alone: excess %d, room %v", e, room)
	}
	for _, c := range []struct {
		other, excess uint64 // MiB, bytes
		room          bool   // for a MiB more
	}{{20, 0, true}, {40, 0, false}, {60, 10 * mib, false}, {100, 60 * mib * 60 / 160, false}} {
		atomic.StoreUint64(other, c.other*mib)
		if got := Excess(normal); got < c.excess || got > c.excess+2 {
			t.Errorf("beside %d MiB: excess %d, not %d", c.other, got, c.excess)
		}
		if Room(normal, mib) != c.room {
			t.Errorf("beside %d MiB: room is not %v", c.other, c.room)
		}
	}
	atomic.StoreUint64(other, 80*mib)
	reserve(21, Refused)
	reserve(20, normal)
	if !Full(normal, 1) || Admit(normal, 1) {
		t.Error("not full")
	}
	atomic.StoreUint64(other, 70*mib)
	if a := AccountOf(normal); a.Hard != 90*mib || a.Current != 80*mib || Full(normal, 10*mib) {
		t.Errorf("%+v", a)
	}
	Release(normal, 80*mib)
	if mine, all := group.Used(normal); mine != 0 || all != 70*mib {
		t.Errorf("%d and %d are left", mine, all)
	}
}
