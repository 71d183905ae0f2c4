package manager

import "unsafe"

// The caps of a group's members are one budget.

// budget returns the bytes that the members of a group may have together, and the bytes that they
// have.
func (m *manager) budget(group *label) (limit, bytes uint64) {
	for i := m.first; i != nil; i = i.next {
		if i.group == *group {
			limit += i.cap
			bytes = min(bytes+i.bytes, most)
		}
	}
	return limit, bytes
}

// available returns how many of the free bytes a group may allocate, and whether less than 1/20 of
// its budget is left. In passive mode there is no budget, and the group may allocate all.
func (m *manager) available(group *label, free uint64) (bytes uint64, full bool) {
	if m.active == 0 {
		return free, false
	}
	limit, used := m.budget(group)
	left := uint64(0)
	if used < limit {
		left = limit - used
	}
	return min(left, free), left < limit/20 || left == limit/20 && limit%20 != 0
}

func (m *manager) answerAvailable(c *Call) uint64 {
	var group label
	if !group.set(uintptr(c.Group)) {
		return invalid
	}
	bytes, full := m.available(&group, c.Free)
	c.Available = bytes
	if full {
		return Warned
	}
	return 0
}

// charge books a block before the driver is asked for it. In active mode it refuses a block that
// would exceed the group's budget.
func (m *manager) charge(c *Call, i *instance) uint64 {
	if c.Bytes == 0 || c.Kind >= kinds {
		return invalid
	}
	if c.Bytes > most-i.bytes {
		return noMemory
	}
	if m.active != 0 {
		limit, used := m.budget(&i.group)
		if used > limit || c.Bytes > limit-used {
			return noMemory
		}
	}
	i.bytes += c.Bytes
	i.coming++
	m.coming++
	return 0
}

// uncharge undoes a charge whose block was not allocated.
func (m *manager) uncharge(i *instance, bytes uint64) {
	i.bytes -= bytes
	i.coming--
	m.coming--
}

// account books n bytes that an instance has from other sources; a negative n books their end.
func (i *instance) account(n int64) uint64 {
	switch {
	case n >= 0:
		if uint64(n) > most-i.bytes {
			return overFull
		}
		i.external += uint64(n)
		i.bytes += uint64(n)
		i.peak = max(i.peak, i.bytes)
	case uint64(-n) > i.external:
		return overFull
	default:
		i.external -= uint64(-n)
		i.bytes -= uint64(-n)
	}
	return 0
}

// candidate answers the least recently used instance that has memory of the kind that is short. It
// skips instances used up to After, which were answered before, and those used since Until, the
// time of the first answer. C finds out whether the instance is idle. Bytes 0 means the queued
// requests of the instance's group. An instance that is held gets no candidate for a block, because
// its holder asks. Nor does a request that would exceed the group's budget even if all were
// evicted.
func (m *manager) candidate(c *Call, to *instance) uint64 {
	if c.After == 0 {
		c.Until = clock
	}
	if c.Bytes != 0 && to.held != 0 {
		return notThere
	}
	if c.Everywhere == 0 {
		if limit, _ := m.budget(&to.group); to.bytes > limit || c.Bytes > limit-to.bytes {
			return notThere
		}
	}
	from, found := m, (*instance)(nil)
	for o := managers; o != nil; o = o.next {
		if o.live == 0 || o != m && (c.Everywhere == 0 || o.device != m.device ||
			o.context != m.context) {
			continue
		}
		for i := o.first; i != nil; i = i.next {
			if i.mayYield(c, to) && (found == nil || i.used < found.used) {
				from, found = o, i
			}
		}
	}
	if found == nil {
		return notThere
	}
	c.FoundManager = uint64(uintptr(unsafe.Pointer(from)))
	c.Found, c.FoundBytes, c.After, c.Stream = found.id, found.bytes, found.used, found.stream
	c.Evict, c.Arg = found.evict, found.arg
	return 0
}

// mayYield reports whether an instance may be evicted for another one. For the group's budget all
// of its memory counts. For the device only memory that may be on the device counts. An instance of
// a round is not evicted.
func (i *instance) mayYield(c *Call, to *instance) bool {
	switch {
	case c.Bytes == 0 && i.queue != nil && i.group == to.group:
		return false // it waits for the same round
	case i == to || i.held != 0 || i.round != 0 && i.queue != nil:
		return false
	case i.used <= c.After || i.used > c.Until:
		return false
	case c.Everywhere == 0:
		return i.bytes != 0 && i.group == to.group
	}
	return i.device != 0 || i.external != 0
}
