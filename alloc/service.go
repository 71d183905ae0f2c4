package alloc

// servant is the thread that the control plane works as. It has no heaps.
var servant Thread

// Service does the work that is due at now, without a thread of the program: purging, serving
// abandoned heaps, moving spans. It reports whether there may be more to move at once. Only one
// goroutine calls it.
func Service(token uintptr, now uint64) (more bool) {
	t := &servant
	t.token, t.Now = token, now
	serveAbandoned(token, now, abandoned.with.n, true)
	serveLimit(token, now)
	hugeExpire(token, now, anyPlacement, false)
	purgeDue(token, now)
	return migrate(token, now)
}
