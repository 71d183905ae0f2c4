package tiers

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/stats"
)

// Kinds of moves that CountMove counts.
const (
	UpRoom      uintptr = iota // to a faster tier that has room
	UpHotter                   // to a faster tier in the place of colder memory
	DownColder                 // to a slower tier, to make room for hotter memory
	DownSoftcap                // to a slower tier, because of a soft cap
	MoveRefused                // the memory did not move
	MovePutOff                 // the other tier was full
	OutCold                    // to swap, as the coldest
	OutUnknown                 // to swap, though its use was not known yet
	OutAgain                   // to swap, soon after it had come back
	OutRefused                 // the memory did not go to swap
)

// followed is what TA_ON_SOFTCAP=follow did. The control plane counts it, and the report shows it
// even when the control plane is gone. The fields are atomic.
type followed struct {
	on                                 uint64 // 1: the process follows, or did
	source, samples, regions, threadNs uint64
	hot, cold                          [slots]uint64
	resident, back                     uint64          // bytes
	moves                              [16]stats.Moves // by kind
}

// following is read and written only where the process follows: elsewhere its page stays untouched.
var following followed

// CountSource says what measures from now on, a stats.Source….
func CountSource(source uint64) {
	atomic.StoreUint64(&following.source, source)
	atomic.StoreUint64(&following.on, 1)
}

// CountSample counts a sample of so many regions, with the bytes of each tier that it found hot and
// cold.
func CountSample(regions int, hot, cold *[config.TierCount]uint64) {
	atomic.AddUint64(&following.samples, 1)
	atomic.StoreUint64(&following.regions, uint64(regions))
	for t := range hot {
		atomic.StoreUint64(&following.hot[t], hot[t])
		atomic.StoreUint64(&following.cold[t], cold[t])
	}
}

// CountMove counts what became of a region's move.
func CountMove(kind, bytes uintptr) {
	m := &following.moves[kind&15]
	atomic.AddUint64(&m.Regions, 1)
	atomic.AddUint64(&m.Bytes, uint64(bytes))
}

// CountResident says how many bytes of the heap a look has found in memory, and how many had come
// back from swap since the one before.
func CountResident(resident, back uint64) {
	atomic.StoreUint64(&following.resident, resident)
	atomic.AddUint64(&following.back, back)
	atomic.StoreUint64(&following.on, 1)
}

// CountFollowTime says how much processor time the thread that follows has taken so far.
func CountFollowTime(ns uint64) { atomic.StoreUint64(&following.threadNs, ns) }

// fillFollowing puts what the process did to follow into r.
func fillFollowing(r *stats.Report) {
	if policy.onSoftcap != config.SoftcapFollow || atomic.LoadUint64(&following.on) == 0 {
		return
	}
	r.Follows = 1
	f := &r.Following
	f.Source = atomic.LoadUint64(&following.source)
	f.Samples = atomic.LoadUint64(&following.samples)
	f.Regions = atomic.LoadUint64(&following.regions)
	f.ThreadNs = atomic.LoadUint64(&following.threadNs)
	f.UpRoom, f.UpHotter = movesOf(UpRoom), movesOf(UpHotter)
	f.DownColder, f.DownSoftcap = movesOf(DownColder), movesOf(DownSoftcap)
	f.Refused, f.PutOff = movesOf(MoveRefused), movesOf(MovePutOff)
	f.OutCold, f.OutUnknown = movesOf(OutCold), movesOf(OutUnknown)
	f.OutAgain, f.OutRefused = movesOf(OutAgain), movesOf(OutRefused)
	f.BytesBack = atomic.LoadUint64(&following.back)
	f.BytesResident = atomic.LoadUint64(&following.resident)
	for i := range following.hot {
		r.Tiers[i].BytesHot = atomic.LoadUint64(&following.hot[i])
		r.Tiers[i].BytesCold = atomic.LoadUint64(&following.cold[i])
	}
}

func movesOf(kind uintptr) stats.Moves {
	m := &following.moves[kind&15]
	return stats.Moves{Regions: atomic.LoadUint64(&m.Regions), Bytes: atomic.LoadUint64(&m.Bytes)}
}

// forgetFollowing begins anew, in a child whose parent followed.
func forgetFollowing() {
	if policy.onSoftcap == config.SoftcapFollow {
		following = followed{}
	}
}
