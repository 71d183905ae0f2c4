package raw

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/lockrank"
)

// In the debug build a lock that has a rank compares each Take with the table of package lockrank.
// Whatever the thread holds must be allowed there, even if it need not wait this time. A lock's
// word names its holder, so there is nothing to record. Try and a Take that refuses do not wait:
// they may go against the order.

// ranked are the locks that have a rank.
var ranked struct {
	n    uintptr
	lock [rankedMax]*Lock
	rank [rankedMax]lockrank.Rank
}

const rankedMax = 1024 // of tests that begin many profiles

// SetRank gives the lock its place in the order. Precondition: the process has one thread.
func (l *Lock) SetRank(r lockrank.Rank) {
	Check(ranked.n < rankedMax, "there are more locks than ranked has places")
	ranked.lock[ranked.n%rankedMax] = l
	ranked.rank[ranked.n%rankedMax] = r
	ranked.n++
}

// rank is the lock's place in the order. A process whose locks have none does not check.
func (l *Lock) rank() lockrank.Rank {
	for i := uintptr(0); i < ranked.n; i++ {
		if ranked.lock[i%rankedMax] == l {
			return ranked.rank[i%rankedMax]
		}
	}
	Check(ranked.n == 0, "a lock has no rank")
	return 0
}

// checkOrder aborts the process if the thread named by token must not wait for the lock.
func (l *Lock) checkOrder(token uintptr) {
	r := l.rank()
	if r == 0 || l.Refuses(token) {
		return
	}
	for i := uintptr(0); i < ranked.n; i++ {
		o, held := ranked.lock[i%rankedMax], ranked.rank[i%rankedMax]
		if o.HeldBy(token) && (!lockrank.Allows(held, r) || held == r && addrOf(l) < addrOf(o)) {
			outOfOrder(held, r)
		}
	}
	checkForeign(token, r)
}

func addrOf(l *Lock) uintptr { return uintptr(unsafe.Pointer(l)) }

// foreign are the locks of C, each by its rank.
var foreign [lockrank.Count]struct {
	token uintptr // of the last holder
	word  uintptr // if not 0, the address of the word that has the holder's process
}

// ForeignTaken notes that a thread has taken a lock of C, or with token 0 that it has released it.
// It aborts the process if the thread must not have waited for it. libc's fork waits for stdio's
// list in any case, also in a handler that interrupted a holder.
func ForeignTaken(token uintptr, r lockrank.Rank, word uintptr) {
	if token != 0 && r != lockrank.Stdio {
		checkForeign(token, r)
		for i := uintptr(0); i < ranked.n; i++ {
			held := ranked.rank[i%rankedMax]
			if ranked.lock[i%rankedMax].HeldBy(token) && !lockrank.Allows(held, r) {
				outOfOrder(held, r)
			}
		}
	}
	f := &foreign[r%lockrank.Count]
	atomic.StoreUintptr(&f.word, word)
	atomic.StoreUintptr(&f.token, token)
}

// checkForeign compares the locks of C that the thread holds with the one of rank r.
func checkForeign(token uintptr, r lockrank.Rank) {
	for held := range foreign {
		f := &foreign[held]
		if atomic.LoadUintptr(&f.token) != token {
			continue
		}
		word := atomic.LoadUintptr(&f.word)
		if word != 0 && uintptr(atomic.LoadUint32((*uint32)(Ptr(word)))) != Pid() {
			continue // it was released, or the holder was the parent
		}
		if !lockrank.Allows(lockrank.Rank(held), r) {
			outOfOrder(lockrank.Rank(held), r)
		}
	}
}

func outOfOrder(held, wanted lockrank.Rank) {
	var l Line
	l.Text("tieralloc: lock order: a thread waits for ")
	l.Text(lockrank.Locks[wanted%lockrank.Count].Name)
	l.Text(" and holds ")
	l.Text(lockrank.Locks[held%lockrank.Count].Name)
	l.Die()
}
