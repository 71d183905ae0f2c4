package probe

import (
	"math/bits"
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/sysfs"
	"tieralloc/numa"
)

// The kernel sorts nodes into memory tiers (Linux 6.1; by the firmware's figures since 6.11). The
// numbers in the names of the tiers' folders, such as memory_tier4, have gaps, so the folder above
// has to be listed.

const tierFolder = "/devices/virtual/memory_tiering"

// entries is a buffer for what getdents64 returns.
type entries struct {
	_   [0]uint64 // records are aligned
	buf [512]byte
}

const entriesMask = 511

// The fields of struct linux_dirent64.
const (
	entryLength = 16
	entryName   = 19
)

// memoryTiers fills MemoryTier and Tiered.
func memoryTiers(t *numa.Topology) {
	const folders = 1024 // at most as many as there can be nodes
	var p sysfs.Path
	p.Root()
	p.Text(tierFolder)
	fd, ok := p.Open(syscall.O_DIRECTORY)
	if !ok {
		return
	}
	var e entries
	for i := 0; i < folders; i++ {
		n, errno := raw.Sys(syscall.SYS_GETDENTS64, fd, uintptr(unsafe.Pointer(&e.buf)),
			entriesMask+1, 0, 0, 0)
		if errno != 0 || n == 0 || n > entriesMask+1 {
			break
		}
		tierEntries(t, &e, n)
	}
	sysfs.CloseFd(fd)
}

// tierEntries reads the n bytes of records at e.
func tierEntries(t *numa.Topology, e *entries, n uintptr) {
	for at := uintptr(0); at+entryName < n; {
		length := uintptr(e.buf[(at+entryLength)&entriesMask]) |
			uintptr(e.buf[(at+entryLength+1)&entriesMask])<<8
		if length <= entryName || length > n-at {
			return
		}
		if tier, ok := e.tierNumber(at+entryName, at+length); ok {
			tierNodes(t, tier)
		}
		at += length
	}
}

// tierNumber reads a name memory_tierN that begins at from and ends in a zero byte
// before to.
func (e *entries) tierNumber(from, to uintptr) (v uintptr, ok bool) {
	const name = "memory_tier"
	const most = 10_000 // of Path.Number
	for i := 0; i < len(name); i++ {
		if from >= to || e.buf[from&entriesMask] != name[i] {
			return 0, false
		}
		from++
	}
	for ; from < to && e.buf[from&entriesMask] != 0; from++ {
		d := uintptr(e.buf[from&entriesMask]) - '0'
		if d > 9 || v*10+d >= most {
			return 0, false
		}
		v = v*10 + d
		ok = true
	}
	return v, ok
}

// tierNodes notes the nodes of a tier.
func tierNodes(t *numa.Topology, tier uintptr) {
	var p sysfs.Path
	p.Root()
	p.Text(tierFolder)
	p.Text("/memory_tier")
	p.Number(tier)
	p.Text("/nodelist")
	set, _, _ := sysfs.NodeSet(&p)
	set &= t.Online
	t.Tiered |= set
	for ; set != 0; set &= set - 1 {
		t.Node[bits.TrailingZeros64(set)&63].MemoryTier = uint32(tier)
	}
}
