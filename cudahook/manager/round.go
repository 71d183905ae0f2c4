package manager

import "tieralloc/internal/raw"

// A round allocates the queued requests of a group. The instances that take part keep its number
// until they are told or the round fails. So each of them is told once, of all its blocks, even if
// the group changes meanwhile.

// plan computes one chunking for all queued requests of an instance's group, with the most runs
// that a queue has, and begins a round with the group's members.
func (m *manager) plan(c *Call, of *instance) uint64 {
	to := (*Chunking)(raw.Ptr(uintptr(c.Out)))
	runs := uint64(1)
	for i := m.first; i != nil; i = i.next {
		if i.group != of.group {
			continue
		}
		if i.round != 0 {
			return busy
		}
		if i.queue != nil {
			runs = max(runs, i.queue.runs)
		}
	}
	m.begin(to, &of.group, c.Free, runs)
	for i := m.first; i != nil; i = i.next {
		if i.queue == nil || i.group != of.group {
			continue
		}
		for k := uint64(0); k < i.queue.length; k++ {
			bytes, cuttable, _ := i.queue.wishes[k&(QueueMax-1)].request.size(0)
			to.count(bytes, cuttable)
		}
	}
	c.Runs, c.Hopeless = runs, 0
	if why := to.fit(c.Free, runs); why != 0 {
		if c.Memory != 0 && m.hopeless(to, &of.group, c.Memory, runs) {
			c.Hopeless = 1
		}
		return why
	}
	if why := m.shorten(to, c, of, runs); why != 0 {
		return why
	}
	m.rounds++
	for i := m.first; i != nil; i = i.next {
		if i.group == of.group {
			i.round = m.rounds
		}
	}
	c.Round = m.rounds
	return 0
}

// serveRound answers a call about a round.
func (m *manager) serveRound(c *Call) uint64 {
	for i := m.first; i != nil; i = i.next {
		if i.round != c.Round || c.Round == 0 {
			continue
		}
		switch c.Op {
		case OpTell:
			m.tellOf(c, i)
			return 0
		case OpRoundOver:
			i.round = 0
			continue
		}
		if i.queue != nil && c.wish(i) {
			return 0
		}
	}
	if c.Op == OpRoundOver {
		return 0
	}
	return notThere
}

// wish finds a request of an instance without a block (OpWanted), or takes the block of one
// (OpTakeBack).
func (c *Call) wish(i *instance) bool {
	for k := uint64(0); k < i.queue.length; k++ {
		w := &i.queue.wishes[k&(QueueMax-1)]
		if c.Op == OpWanted && w.placed == 0 {
			c.Found, c.Index, c.Kind = i.id, k, uint64(uint32(w.request.kind))
			c.Bytes, _, _ = w.request.size(c.Runs)
			return true
		}
		if c.Op == OpTakeBack && w.placed != 0 {
			c.Address = w.block
			w.block, w.placed = 0, 0
			return true
		}
	}
	return false
}

// place notes the block of a request.
func (c *Call) place(i *instance) uint64 {
	if i.queue == nil || c.Index >= i.queue.length || i.round == 0 {
		return notThere
	}
	w := &i.queue.wishes[c.Index&(QueueMax-1)]
	w.block, w.placed = c.Address, 1
	return 0
}

// tellOf answers the blocks that an instance got in a round. It ends the round for the instance and
// empties its queue.
func (m *manager) tellOf(c *Call, i *instance) {
	c.Found, c.Ready, c.Arg, c.Count = i.id, i.ready, i.readyArg, 0
	i.round = 0
	if i.queue == nil {
		return
	}
	for k := uint64(0); k < i.queue.length && k < QueueMax; k++ {
		address := i.queue.wishes[k&(QueueMax-1)].block
		raw.Store(uintptr(c.Out)+uintptr(k)*8, uintptr(address))
		if b := *m.at(address); b != nil {
			b.round = 0
		}
		c.Count++
	}
	m.dequeue(i)
}
