package document

import "tieralloc/stats"

// sites writes the key "sites", unless there is no heap profile.
func (w *writer) sites() {
	if w.list == nil {
		return
	}
	w.key("sites")
	w.open('[')
	for i := uint64(0); i < w.list.Count && i < stats.SiteMax; i++ {
		w.item()
		w.open('{')
		w.site(&w.list.List[i&(stats.SiteRoom-1)])
		w.close('}')
	}
	w.close(']')
}

func (w *writer) lifetime(s *stats.Site) {
	if s.BlocksTotalFreed == 0 {
		w.key("lifetime_median_ns")
		w.text("null")
		return
	}
	w.count("lifetime_median_ns", s.LifetimeMedianNs)
}

func (w *writer) stack(s *stats.Site) {
	w.key("stack")
	w.open('[')
	for i := uint64(0); i < s.StackLen && i < stats.StackMax; i++ {
		f := &s.Stack[i&(stats.StackMax-1)]
		w.item()
		w.put('"')
		w.escaped(f.Name, f.NameLen)
		switch {
		case f.Function != 0:
			w.put(':')
			w.dec(f.Address)
			w.put(' ')
			w.escaped(f.Function, f.FunctionLen)
		case f.NameLen != 0:
			w.put('+')
			fallthrough
		default:
			w.text("0x")
			w.hex(f.Address)
		}
		w.put('"')
	}
	w.close(']')
}
