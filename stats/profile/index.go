package profile

// indexLeast is how many slots an index has at first: a memory page of them.
const indexLeast = 1 << 10

// index leads from hashes to numbers, from 1 on: an open hash table with linear probing. It begins
// small and grows, so that a process with few numbers touches little memory.
//
//	its numbers <= slots/2; slots = indexLeast << grown
type index struct {
	grown  uintptr
	number [2 * locationCount]uint32 // 0: the slot is empty
}

// slot returns a slot. The first follows the last.
func (x *index) slot(i uintptr) *uint32 {
	return &x.number[i&(indexLeast<<(x.grown&63)-1)&(2*locationCount-1)]
}

// add enters a number.
func (x *index) add(hash, n uintptr) {
	for *x.slot(hash) != 0 {
		hash++
	}
	*x.slot(hash) = uint32(n)
}

// full reports whether there is no room for n numbers, and reset is due.
func (x *index) full(n uintptr) bool { return n > indexLeast/2<<(x.grown&63) }

// reset makes the index empty, with room for n numbers.
func (x *index) reset(n uintptr) {
	for x.full(n) {
		x.grown++
	}
	for i := uintptr(0); i < indexLeast<<(x.grown&63); i++ {
		*x.slot(i) = 0
	}
}
