package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// What a huge page costs here. It should take the kernel less time than the ordinary pages that it
// stands for. But a virtual machine may return free memory to its host (free page reporting), by
// whole huge pages only: each of them then takes 512 faults of the host, while ordinary pages are
// cut from what other programs left over. So before huge pages are asked for by measure, one of
// them and costSample bytes of ordinary pages are populated, in a mapping of their own. The kernel
// gives the program the same huge page afterwards.
//
// Where they look dear another one is populated, because other threads may have held up the first.
//
//	dear ⇔ time of a huge page > costMost · time of ordinary pages of its size
const (
	costSample = SliceSize
	costMost   = 4
	// nanoseconds until the next look, after huge pages were cheap and dear
	cheapFresh = 50e6
	dearFresh  = 1e9
)

// hugeCost is what the last look showed. Atomic.
var hugeCost struct {
	until uint64 // when to look again, in nanoseconds
	dear  uint32
}

// hugeDear reports whether huge pages are dear.
func hugeDear() bool {
	now, until := raw.Clock(raw.ClockMono), atomic.LoadUint64(&hugeCost.until)
	if now >= until && atomic.CompareAndSwapUint64(&hugeCost.until, until, now+cheapFresh) {
		dear := uint32(0)
		if ordinary, huge, ok := pageTimes(); ok && dearer(ordinary, huge) {
			dear = 1
			atomic.StoreUint64(&hugeCost.until, now+dearFresh)
		}
		atomic.StoreUint32(&hugeCost.dear, dear)
	}
	return atomic.LoadUint32(&hugeCost.dear) != 0
}

// dearer reports whether huge pages are dear where costSample bytes of ordinary pages take ordinary
// nanoseconds and a huge page takes huge.
func dearer(ordinary, huge uint64) bool {
	return huge > costMost*huge2M/costSample*ordinary
}

// pageTimes populates costSample bytes of ordinary pages and a huge page. ok is false if the kernel
// cannot do that (before Linux 5.14).
func pageTimes() (ordinary, huge uint64, ok bool) {
	const n = 3*huge2M + costSample
	addr := raw.Map(n)
	if addr == 0 {
		return 0, 0, false
	}
	at := raw.RoundUp(addr, huge2M)
	if ordinary, ok = populate(at+2*huge2M, costSample, madvNoHugePage); ok {
		huge, ok = populate(at, huge2M, madvHugePage)
	}
	if ok && dearer(ordinary, huge) {
		again, _ := populate(at+huge2M, huge2M, madvHugePage)
		huge = min(huge, again)
	}
	unmapFresh(addr, n)
	return ordinary, huge, ok
}

// populate faults in n bytes at addr with the pages that advice asks for, and returns how many
// nanoseconds that took.
func populate(addr, n, advice uintptr) (ns uint64, ok bool) {
	raw.Sys(sysMadvise, addr, n, advice, 0, 0, 0)
	start := raw.Clock(raw.ClockMono)
	errno := raw.Populate(addr, n)
	return raw.Clock(raw.ClockMono) - start, errno == 0
}
