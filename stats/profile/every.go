package profile

import "sync/atomic"

// Every is how many bytes the program allocates between two writings of the profile
// (TA_PROFILE_EVERY); 0: it is written on request only.
var Every float64

var due uint32 // 1: Every bytes were allocated

// Due reports whether the profile is to be written because the program has allocated so much.
func Due() bool { return atomic.LoadUint32(&due) != 0 }

// Written notes that the profile is being written. Precondition: the table is held.
func Written() {
	t.fresh = 0
	atomic.StoreUint32(&due, 0)
}

// allocated counts bytes, by the estimate of a sample.
func (t *table) allocated(bytes float64) {
	if Every == 0 {
		return
	}
	add(&t.fresh, bytes)
	if load(&t.fresh) >= Every {
		atomic.StoreUint32(&due, 1)
	}
}
