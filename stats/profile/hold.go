package profile

import (
	"tieralloc/internal/lockrank"
	"tieralloc/internal/raw"
)

// Whoever holds the lock of the table or of a part does not wait for another of these locks, but in
// Hold, and neither does a signal handler that interrupted it. So every wait ends.

// take takes a lock of the table. wait is as for Note.
func (t *table) take(l *raw.Lock, token uintptr, wait bool) bool {
	if !wait {
		return l.Try(token)
	}
	return !lockrank.On && l.Try(token) || !Holds(token) && l.Take(token)
}

// lockAt returns lock i, in the order in which Hold takes them.
func (t *table) lockAt(i uintptr) *raw.Lock {
	if i == 0 {
		return &t.lock.Lock
	}
	return &t.samples.part[(i-1)&(partCount-1)].Lock
}

const lockCount = 1 + partCount

// Hold takes the table, so that nothing changes it. wait is as for Note. It reports false in a
// signal handler that interrupted the thread in the table.
func Hold(token uintptr, wait bool) bool {
	if t == nil || Holds(token) {
		return false
	}
	for i := uintptr(0); i < lockCount; i++ {
		if !t.lockAt(i).TakeIf(token, wait) {
			release(i)
			return false
		}
	}
	return true
}

// Release gives back what Hold has taken.
func Release() { release(lockCount) }

// release releases the first n locks.
func release(n uintptr) {
	for n > 0 {
		n--
		t.lockAt(n).Release()
	}
}

// Holds reports whether the thread has the table or a part of it: it is then in a signal handler
// that interrupted itself.
func Holds(token uintptr) bool {
	for i := uintptr(0); t != nil && i < lockCount; i++ {
		if t.lockAt(i).HeldBy(token) {
			return true
		}
	}
	return false
}
