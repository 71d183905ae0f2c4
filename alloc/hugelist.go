package alloc

// hugeList has the live huge blocks, linked by prev and pendNext: of a page's uses of these they
// have none. The lists by age have them, too, among all other spans in use.
type hugeList struct{ head *Page }

// add puts p on the list. Precondition: poolLock is held.
func (l *hugeList) add(p *Page) {
	p.prev, p.pendNext = nil, l.head
	if l.head != nil {
		l.head.prev = p
	}
	l.head = p
}

// remove takes p off, or leaves it alone as ageList.remove does.
func (l *hugeList) remove(p *Page) {
	switch {
	case p.prev == nil:
		if l.head == p {
			l.head = p.pendNext
		}
	case p.prev.pendNext == p:
		p.prev.pendNext = p.pendNext
	}
	if p.pendNext != nil && p.pendNext.prev == p {
		p.pendNext.prev = p.prev
	}
}
