package group

import "sync/atomic"

// batch is how much more than a request needs a member asks for, in pages.
const batch = 4 << 20 >> pageShift

// Charge reserves n bytes of an account for this process. It reports false, and reserves nothing,
// where that would exceed the group's hard cap. Without a group it does nothing and reports true.
func Charge(account, n uintptr) bool {
	p := joined()
	if p == nil {
		return true
	}
	ok := p.charge(self.slot, account, uint64(n))
	if ok && self.stays {
		atomic.AddUint64(&self.own[account&accountMask], uint64(n))
	}
	return ok
}

// charge is Charge for member me.
func (p *Page) charge(me, account uintptr, size uint64) bool {
	s := p.share(me, account)
	hard := p.Caps[account&accountMask].Hard
	if hard == Uncapped || hard == 0 { // 0: a forked child that could not join
		atomic.AddUint64(&s.used, size)
		return true
	}
	for {
		used := s.Used()
		if size > hard || used+size > hard {
			break
		}
		if used+size > s.Granted() {
			if !p.grant(me, account, size) &&
				!(used+size <= s.Floor() && p.wait(me, account, size)) {
				break
			}
			continue
		}
		if !atomic.CompareAndSwapUint64(&s.used, used, used+size) {
			continue
		}
		if used+size <= s.Granted() {
			return true
		}
		subtract(&s.used, size) // another member took the rest of the grant meanwhile
	}
	atomic.AddUint64(&p.Slots[me&memberMask].Refused, 1)
	atomic.AddUint64(&p.Totals[account&accountMask].Refused, 1)
	p.tellShort(account)
	return false
}

// Release undoes a Charge of n bytes. In a forked child it subtracts at most what the child itself
// has reserved.
func Release(account, n uintptr) {
	p, bytes := self.page, uint64(n)
	if p == nil {
		return
	}
	if self.stays {
		bytes = subtract(&self.own[account&accountMask], bytes)
	}
	subtract(&p.share(self.slot, account).used, bytes)
}

// subtract subtracts n from a count, or the count where that is less, and returns what it has
// subtracted.
func subtract(count *uint64, n uint64) uint64 {
	for {
		old := atomic.LoadUint64(count)
		done := min(n, old)
		if atomic.CompareAndSwapUint64(count, old, old-done) {
			return done
		}
	}
}

// grant gets member me so much of an account that it can reserve size bytes more. It reports false
// where the cap does not allow it.
func (p *Page) grant(me, account uintptr, size uint64) bool {
	s := p.share(me, account)
	for {
		last := p.complete(account)
		others := p.others(me, account)
		granted := atomic.LoadUint64(&s.granted) >> tagBits
		target := pagesUp(s.Used() + size)
		if target <= granted {
			return true
		}
		hard := p.Caps[account&accountMask].Hard >> pageShift
		room := hard - min(others, hard)
		if target > room {
			if p.take(me, account, target-room) || p.reap(reapRefused) {
				continue
			}
			return false
		}
		more := min(room, target+batch) - granted
		if more > deltaMask {
			more = target - granted
		}
		if more > deltaMask {
			return false
		}
		next := newOperation(last, me, more)
		if atomic.CompareAndSwapUint64(&p.ops[account&accountMask], uint64(last), uint64(next)) {
			p.complete(account)
			return true
		}
	}
}

// others returns the sum of the other members' shares of an account, in pages.
func (p *Page) others(me, account uintptr) (pages uint64) {
	for i := uintptr(0); i < p.high(); i++ {
		if i != me {
			pages += p.share(i, account).whole()
		}
	}
	return pages
}

// take takes pages that other members were granted and have not reserved, up to so many. It reports
// whether there were any. Nobody has them then, and all members may ask for them.
func (p *Page) take(me, account uintptr, pages uint64) (any bool) {
	n, taken := p.high(), uint64(0)
	for k := uintptr(1); k < n && taken < pages; k++ {
		i := me + k
		if i >= n {
			i -= n
		}
		taken += p.takeFrom(i, account, pages-taken)
	}
	atomic.AddUint64(&p.Slots[me&memberMask].Taken, taken<<pageShift)
	atomic.AddUint64(&p.Totals[account&accountMask].Taken, taken<<pageShift)
	return taken != 0
}

// takeFrom takes at most so many pages from a member, and returns how many.
func (p *Page) takeFrom(member, account uintptr, pages uint64) uint64 {
	s := p.share(member, account)
	for {
		granted := atomic.LoadUint64(&s.granted)
		used := s.Used()
		keep := pagesUp(max(used, s.Floor()))
		spare := granted >> tagBits
		spare -= min(keep, spare)
		if spare = min(spare, pages); spare == 0 {
			return 0
		}
		if atomic.CompareAndSwapUint64(&s.granted, granted, granted-spare<<tagBits) {
			return spare
		}
	}
}

// Room returns how many bytes this process could reserve now within the hard cap.
func Room(account uintptr) uint64 {
	p := self.page
	if p == nil {
		return Uncapped
	}
	hard := p.Caps[account&accountMask].Hard
	if hard == Uncapped || hard == 0 {
		return Uncapped
	}
	p.reap(reapAsked)
	return hard - min(p.claimed(account), hard)
}

// claimed returns the bytes of an account that no member could take: what is reserved, and the
// other members' floors.
func (p *Page) claimed(account uintptr) (n uint64) {
	for i := uintptr(0); i < p.high(); i++ {
		s := p.share(i, account)
		if used := s.Used(); i == self.slot {
			n += used
		} else {
			n += max(used, s.Floor())
		}
	}
	return n
}

// Used returns what this process and the whole group have reserved of an account, in bytes.
func Used(account uintptr) (mine, all uint64) {
	p := self.page
	if p == nil {
		return 0, 0
	}
	p.reap(reapAsked)
	for i := uintptr(0); i < p.high(); i++ {
		all += p.share(i, account).Used()
	}
	return p.share(self.slot, account).Used(), all
}
