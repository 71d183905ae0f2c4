package unwind

import (
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
)

// TestFrameOf: a variable belongs to the frame between whose stack pointer and the next one's it
// is, unless these are on different stacks.
func TestFrameOf(t *testing.T) {
	const other = 1 << 40 // another stack
	u := (*Stack)(raw.Ptr(raw.Map(unsafe.Sizeof(Stack{}))))
	u.N = 4
	for i, sp := range []uintptr{0x1000, 0x1040, other, other + 0x100} {
		u.Frame[i].SP = sp
	}
	for addr, want := range map[uintptr]uintptr{
		0xfff: 4, 0x1000: 0, 0x103f: 0, 0x1040: 1, 0x2000: 1, other / 2: 4, other: 2,
		other + 0x100: 3, other + 0x200: 3, other + 0x100 + maxFrame: 4,
	} {
		if got := u.FrameOf(addr); got != want {
			t.Errorf("%#x is in frame %d, not %d", addr, got, want)
		}
	}
}
