package config

import "tieralloc/internal/raw"

// The grammar of TA_RULES. Blanks around each part are ignored, and so are empty rules, such as one
// after a last semicolon.
//
//	rules     = rule { ";" rule }
//	rule      = condition { "," condition } ":" hint
//	condition = "size" ( ">=" | ">" | "<=" | "<" | "=" ) SIZE | "size=" SIZE "-" SIZE
//	          | ( "thread" | "program" | "lib" ) "=" GLOB
//	          | "site=" caller { "<" caller }
//	caller    = GLOB "+0x" HEX | FUNCTION

// parse reads the value of TA_RULES. It writes a line on fd for each bad rule and returns their
// number. If there is one the list is empty, because a part of a list may mean something else than
// the whole.
func (l *RuleList) parse(v value, fd uintptr) (bad uintptr) {
	l.Count = 0
	l.text.Reset()
	for i := uintptr(0); i <= v.n; {
		end := v.find(i, ';')
		rule := v.part(i, end).trim()
		i = end + 1
		if rule.n == 0 {
			continue
		}
		f, part := l.add(rule)
		if f == sound {
			continue
		}
		complainRule(rule, f, part, fd)
		bad++
		if f == tooMany || f == tooLong { // the rules after it would have the same flaw
			break
		}
	}
	if bad != 0 {
		l.Count = 0
	}
	return bad
}

// add reads one rule. For a bad rule it returns the flaw and the part that has it.
func (l *RuleList) add(v value) (f flaw, part value) {
	if l.Count >= RuleMax {
		return tooMany, value{}
	}
	r := &l.Rule[l.Count&(RuleMax-1)]
	l.Count++
	*r = Rule{Max: ^uint64(0)}
	colon := v.find(0, ':')
	for i := uintptr(0); i <= colon; {
		end := min(v.find(i, ','), colon)
		part = v.part(i, end).trim()
		if f = l.condition(r, part); f != sound {
			return f, part
		}
		i = end + 1
	}
	if r.Min > r.Max {
		return never, v.part(0, colon)
	}
	if colon == v.n {
		return noHint, value{}
	}
	part = v.part(colon+1, v.n).trim()
	if part.n == 0 {
		return noHint, value{}
	}
	if !part.asWord(&r.Hint, &words.hint, HintCount) {
		return badHint, part
	}
	return sound, value{}
}

// condition adds one condition to the rule.
func (l *RuleList) condition(r *Rule, v value) flaw {
	i := uintptr(0)
	for i < v.n && v.at(i) != '<' && v.at(i) != '>' && v.at(i) != '=' {
		i++
	}
	if i == v.n {
		return badCondition
	}
	word, op := v.part(0, i).trim(), v.at(i)
	i++
	if word.isWord("size") {
		return r.size(op, v.part(i, v.n))
	}
	if op != '=' {
		return badCondition
	}
	glob := v.part(i, v.n).trim()
	switch {
	case word.isWord("thread"):
		return l.glob(&r.Thread, glob, false)
	case word.isWord("program"):
		return l.glob(&r.Program, glob, true)
	case word.isWord("lib"):
		return l.glob(&r.Lib, glob, true)
	case word.isWord("site"):
		return l.site(r, glob)
	}
	return badCondition
}

// size adds a condition on the size. v is the text after the operator's first byte.
func (r *Rule) size(op byte, v value) flaw {
	orEqual := op != '=' && v.n != 0 && v.at(0) == '='
	if orEqual {
		v = v.part(1, v.n)
	}
	lo, hi := uint64(0), ^uint64(0)
	dash := v.n
	if op == '=' {
		dash = v.find(0, '-')
	}
	var n, m uint64
	if !v.part(0, dash).trim().asSize(&n) {
		return badSize
	}
	m = n
	if dash < v.n && (!v.part(dash+1, v.n).trim().asSize(&m) || m < n) {
		return badSize
	}
	switch {
	case op == '=':
		lo, hi = n, m
	case op == '<' && orEqual:
		hi = n
	case op == '<':
		hi = n - 1
	case orEqual:
		lo = n
	default:
		lo = n + 1
	}
	r.Min, r.Max = max(r.Min, lo), min(r.Max, hi)
	return sound
}

// glob adds a condition on a name. The pattern of a file's name may not contain a slash.
func (l *RuleList) glob(dst *Glob, v value, file bool) flaw {
	switch {
	case v.n == 0:
		return emptyGlob
	case dst.Set():
		return twice
	case file && v.find(0, '/') != v.n:
		return folderGlob
	}
	off := l.text.Len()
	if !l.text.Mem(v.addr, v.n) {
		return tooLong
	}
	*dst = Glob{uint32(off), uint32(v.n)}
	return sound
}

// ruleMax and partMax are how many bytes of a bad rule and of its bad part a line shows.
const (
	ruleMax = shownMax
	partMax = 60
)

// complainRule writes the line for a bad rule.
//
//go:noinline
func complainRule(rule value, f flaw, part value, fd uintptr) {
	var l raw.Line
	what, accepts := f.words()
	l.Text("tieralloc: ")
	l.Text(variables[varRules].name)
	l.Text("=")
	show(&l, rule, ruleMax)
	l.Text(": ")
	l.Text(what)
	if part.n != 0 {
		l.Text(" ")
		show(&l, part, partMax)
	}
	l.Text(": expected ")
	l.Text(accepts)
	l.Text("; using ")
	l.Text(noRules)
	l.Emit(fd)
}
