package config

import "tieralloc/internal/raw"

// names is a set of variables: a bit for each row of the table.
type names [tableSize / 64]uint64

// add adds variable i, and reports whether it was not in the set.
func (s *names) add(i uintptr) bool {
	word, bit := &s[i/64%(tableSize/64)], uint64(1)<<(i&63)
	fresh := *word&bit == 0
	*word |= bit
	return fresh
}

// has reports whether variable i is in the set.
func (s *names) has(i uintptr) bool { return s[i/64%(tableSize/64)]>>(i&63)&1 != 0 }

// Parse fills s from the environment at envp, a vector of C strings that ends in a zero word; envp
// may be 0. It returns how many values were bad, having written one line on standard error for
// each.
func Parse(s *Settings, envp uintptr) (bad uintptr) { return ParseTo(s, envp, 2) }

// ParseTo is Parse with the descriptor for its complaints.
func ParseTo(s *Settings, envp, fd uintptr) (bad uintptr) {
	s.setDefaults()
	if envp == 0 {
		return 0
	}
	return s.read(envp, fd)
}

// read is ParseTo for an environment, which most processes have no settings in.
func (s *Settings) read(envp, fd uintptr) (bad uintptr) {
	var seen, given names // the variables met, and those with a value
	excluded := false
	for at := envp; ; at += 8 {
		entry := raw.Load(at)
		if entry == 0 {
			break
		}
		i, val := find(entry)
		if i >= varCount || !seen.add(i) {
			continue
		}
		v := &variables[i&tableMask]
		if val.n == 0 {
			continue
		}
		given.add(i)
		if i == varRules {
			bad += s.Rules.parse(val, fd)
		} else if !s.set(i, val) {
			using := v.fallback
			if i == varOnly { // it was meant to exclude programs
				using, excluded = noProgram, true
			}
			complain(v, val, using, fd)
			bad++
		}
	}
	s.Disable = s.Disable || excluded
	if s.SlowSwap && !given.has(varOnSoftcap) {
		s.OnSoftcap = SoftcapFollow
	}
	s.applyModel(&given)
	s.Rank = rankOf(envp)
	return bad + s.reconcile(envp, fd)
}

// reconcile drops values that contradict another variable. It writes a line for each and returns
// their number.
func (s *Settings) reconcile(envp, fd uintptr) (bad uintptr) {
	for tier := uintptr(0); tier < uintptr(TierCount); tier++ {
		t := &s.Tiers[tier&3]
		first := varTiers + tier*tierVars
		if t.Hard != 0 && t.Soft > t.Hard || t.HardPart != 0 && t.SoftPart > t.HardPart {
			t.Soft, t.SoftPart = 0, 0
			complainPair(envp, first+tierSoft, "at most ", first+tierHard, noSoft, fd)
			bad++
		}
		if t.BW == 0 && t.Burst != 0 {
			t.Burst = 0
			complainPair(envp, first+tierBurst, "a limit in ", first+tierBW, "no burst", fd)
			bad++
		}
	}
	if c := &s.CUDA; c.Hard != 0 && c.Soft > c.Hard {
		c.Soft = 0
		complainPair(envp, varCUDA+cudaSoft, "at most ", varCUDA+cudaHard, noSoft, fd)
		bad++
	}
	return bad
}

// valueOf returns the value of variable i in the environment, empty if it is unset.
func valueOf(envp, i uintptr) value {
	for ; ; envp += 8 {
		entry := raw.Load(envp)
		if entry == 0 {
			return value{}
		}
		if k, val := find(entry); k == i {
			return val
		}
	}
}

// shownMax is how many bytes of a bad value its line shows, so that the rest of the message always
// fits a raw.Line. pairMax is the same for a line that shows two values.
const (
	shownMax = 160
	pairMax  = 80
)

// show appends ="value", at most most bytes of it, without bytes that could control a terminal.
func show(l *raw.Line, val value, most uintptr) {
	l.Text("\"")
	bare(l, val, most)
	l.Text("\"")
}

// bare is show without the quotes.
func bare(l *raw.Line, val value, most uintptr) {
	for i := uintptr(0); i < val.n && i < most; i++ {
		l.Shown(val.at(i))
	}
	if val.n > most {
		l.Text("...")
	}
}

// complain writes the line for a bad value. It is not inlined, so that its buffer is on the stack
// only while it runs.
//
//go:noinline
func complain(v *variable, val value, using string, fd uintptr) {
	var l raw.Line
	l.Text("tieralloc: ")
	l.Text(v.name)
	l.Text("=")
	show(&l, val, shownMax)
	l.Text(": expected ")
	l.Text(v.accepts)
	l.Text("; using ")
	l.Text(using)
	l.Emit(fd)
}

// ComplainLong writes the line for a variable whose value, a path or a template, names a file that
// has more than PathMax bytes in its name.
//
//go:noinline
func ComplainLong(variable string, path *Text, using string) {
	var l raw.Line
	l.Text("tieralloc: ")
	l.Text(variable)
	l.Text("=")
	show(&l, value{path.Addr(), path.Len()}, shownMax)
	l.Text(": expected a path that has at most 4000 bytes when it is absolute and each % is" +
		" replaced; using ")
	l.Text(using)
	l.Emit(2)
}

// complainPair writes the line for a value of variable i that contradicts variable other.
//
//go:noinline
func complainPair(envp, i uintptr, relation string, other uintptr, fallback string, fd uintptr) {
	var l raw.Line
	l.Text("tieralloc: ")
	l.Text(variables[i&tableMask].name)
	l.Text("=")
	show(&l, valueOf(envp, i), pairMax)
	l.Text(": expected ")
	l.Text(relation)
	l.Text(variables[other&tableMask].name)
	if val := valueOf(envp, other); val.n != 0 {
		l.Text("=")
		show(&l, val, pairMax)
	}
	if fallback == sameMemory {
		l.Text(", for both tiers are the same memory; using ")
		bare(&l, valueOf(envp, other), pairMax)
	} else {
		l.Text("; using ")
		l.Text(fallback)
	}
	l.Emit(fd)
}
