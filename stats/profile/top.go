package profile

import (
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// Top fills in the stacks that have allocated most bytes of the host, the largest first. Sites that
// differ in hint, tier or thread only are one. out is all zero. Preconditions: the table is held,
// and Settle was called.
func Top(out *stats.Sites) {
	t.sum()
	for out.Count < stats.SiteMax {
		best := t.largest()
		if best == siteCount {
			return
		}
		t.put(&out.List[out.Count&(stats.SiteRoom-1)], best)
		t.sites[best&(siteCount-1)].all = 0
		out.Count++
	}
}

// sum finds the first site of each stack, and the bytes of all its sites.
func (t *table) sum() {
	t.stackOf.reset(t.siteN)
	for i := uintptr(0); i < t.siteN; i++ {
		s := &t.sites[i&(siteCount-1)]
		if s.first, s.all = siteCount, 0; s.Kind != Host {
			continue
		}
		k := uintptr(s.frames)
		for ; *t.stackOf.slot(k) != 0; k++ {
			f := &t.sites[(*t.stackOf.slot(k)-1)&(siteCount-1)]
			if f.frames == s.frames && f.Depth == s.Depth &&
				t.same(uintptr(f.Stack), uintptr(s.Stack), uintptr(s.Depth)) {
				break
			}
		}
		if *t.stackOf.slot(k) == 0 {
			*t.stackOf.slot(k) = uint32(i + 1)
		}
		s.first, s.all = *t.stackOf.slot(k)-1, 0
		t.sites[s.first&(siteCount-1)].all += s.Bytes
	}
}

// largest returns the first site of the stack with most bytes, or siteCount if all are 0.
func (t *table) largest() uintptr {
	best, most := uintptr(siteCount), 0.0
	for i := uintptr(0); i < t.siteN; i++ {
		if a := t.sites[i&(siteCount-1)].all; a > most {
			best, most = i, a
		}
	}
	return best
}

// put describes the sites whose first one is given. Their hint and tier are those of the one with
// most bytes.
func (t *table) put(out *stats.Site, first uintptr) {
	m, sum := &t.merged, &t.total
	*m, *sum = spread{}, Site{}
	for i := first; i < t.siteN; i++ {
		s := &t.sites[i&(siteCount-1)]
		if uintptr(s.first) != first {
			continue
		}
		if s.Bytes >= sum.all {
			sum.all, sum.Hint, sum.Tier = s.Bytes, s.Hint, s.Tier
		}
		sum.Bytes += s.Bytes
		sum.FreedBytes += s.FreedBytes
		sum.Peak += s.Peak
		m.size.merge(&t.spreads[i&(siteCount-1)].size)
		m.lifetime.merge(&t.spreads[i&(siteCount-1)].lifetime)
	}
	out.BytesTotalAlloc, out.BlocksTotalAlloc = whole(sum.Bytes), whole(m.size.sum)
	out.BytesLive, out.BlocksLive = whole(sum.liveBytes()), whole(m.live())
	out.BytesPeak, out.BlocksTotalFreed = whole(sum.Peak), whole(m.lifetime.sum)
	out.SizeMedian, out.LifetimeMedianNs = m.size.median(), m.lifetime.median()<<lifetimeShift
	out.Hint, out.Tier = uint64(sum.Hint), uint64(sum.Tier)
	t.putStack(out, &t.sites[first&(siteCount-1)])
}

// putStack writes the innermost frames of a site. An address in a file is as the file has it.
func (t *table) putStack(out *stats.Site, s *Site) {
	for k := uint32(0); k < s.Depth && out.StackLen < stats.StackMax; k++ {
		n := t.frames[(s.Stack+k)&(stackWords-1)]
		if n == 0 {
			continue
		}
		f := &out.Stack[out.StackLen&(stats.StackMax-1)]
		if n&pythonFrame != 0 {
			t.putPython(f, n&^pythonFrame)
			out.StackLen++
			continue
		}
		l := &t.locations[(n-1)&(locationCount-1)]
		f.Address = uint64(l.pc)
		if l.object != 0 {
			o := &t.objects[(l.object-1)&(objectCount-1)]
			f.Address = uint64(l.pc - o.bias)
			f.Name, f.NameLen = o.fileName()
		}
		out.StackLen++
	}
}

// fileName returns the last part of the object's path.
func (o *Object) fileName() (at, n uintptr) {
	for n < o.NameLen && raw.LoadByte(o.Name+o.NameLen-1-n) != '/' {
		n++
	}
	return o.Name + o.NameLen - n, n
}
