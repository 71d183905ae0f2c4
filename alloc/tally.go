package alloc

// tally counts blocks and their bytes.
type tally struct{ allocs, frees, allocBytes, freeBytes uint64 }

func (t *tally) alloc(n, bytes uint64) { t.allocs += n; t.allocBytes += bytes }

func (t *tally) free(n, bytes uint64) { t.frees += n; t.freeBytes += bytes }

func (t *tally) add(u *tally) {
	t.alloc(u.allocs, u.allocBytes)
	t.free(u.frees, u.freeBytes)
}

// less is a - b, of numbers modulo 2^64 (granuleCounts), or 0 where other threads, running
// meanwhile, have made b the larger.
func less(a, b uint64) uint64 {
	if int64(a-b) < 0 {
		return 0
	}
	return a - b
}

// noteMove counts blocks of a span, allocated and freed by t, that go from one tier to another.
// Precondition: poolLock is held.
func noteMove(t tally, from, to uintptr) {
	out, in := &pool.count.moves[from&(placementSlots-1)], &pool.count.moves[to&(placementSlots-1)]
	out.alloc(t.allocs, t.allocBytes)
	out.free(t.allocs, t.allocBytes)
	in.alloc(-t.frees, -t.freeBytes)
	in.free(-t.frees, -t.freeBytes)
}
