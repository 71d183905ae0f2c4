package tiers

import (
	"math/bits"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// NoHint is the answer of Uniform and Match if no rule decides.
const NoHint = 8

const ruleMask = config.RuleMax - 1

// The rules, and sets of them: bit i stands for rule i, and the lowest bit wins.
// Rules for other programs are in no set.
//
//	sized, named, called ⊆ active
var rules struct {
	list   uintptr // *config.RuleList
	active uint64  // for this program
	sized  uint64  // those with a condition on the size
	named  uint64  // those with a condition on the thread
	called uint64  // those with a condition on the callers
	deep   uint64  // those with a condition on the caller's callers
}

func setupRules(list *config.RuleList, program uintptr) {
	rules.list = uintptr(unsafe.Pointer(list))
	rules.active, rules.sized, rules.named, rules.called, rules.deep = 0, 0, 0, 0, 0
	for i := uintptr(0); i < list.Count && i < config.RuleMax; i++ {
		r := &list.Rule[i&ruleMask]
		bit := uint64(1) << (i & ruleMask)
		if r.Program.Set() && !holds(list, r.Program, program) {
			continue
		}
		rules.active |= bit
		if r.Min != 0 || r.Max != ^uint64(0) {
			rules.sized |= bit
		}
		if r.Thread.Set() {
			rules.named |= bit
		}
		if r.Called() {
			rules.called |= bit
		}
		if r.Site[1].Name.Set() {
			rules.deep |= bit
		}
	}
}

// RulesOn reports whether there are rules for this program.
func RulesOn() bool { return rules.active != 0 }

// NeedsThread reports whether a rule depends on the name of the thread.
func NeedsThread() bool { return rules.named != 0 }

// NeedsCaller reports whether a rule depends on who calls.
func NeedsCaller() bool { return rules.called != 0 }

// DeepRules is the set of rules that depend on the caller's callers.
func DeepRules() uint64 { return rules.deep }

// ThreadSet is the set of rules that hold for the thread named by the C string, or that have no
// condition on the thread. For name 0 it is the latter only.
func ThreadSet(name uintptr) uint64 {
	set := rules.active
	for rest := rules.named; rest != 0; rest &= rest - 1 {
		if name == 0 || !holds(ruleList(), ruleAt(rest).Thread, name) {
			set &^= rest & -rest
		}
	}
	return set
}

// Base is the hint of the first rule of the set that depends neither on the size nor on the caller,
// or fallback if there is none.
func Base(set uint64, fallback uintptr) uintptr {
	set &^= rules.sized | rules.called
	if set == 0 {
		return fallback
	}
	return uintptr(ruleAt(set).Hint)
}

// Uniform reports whether all requests of lo to hi bytes get the same hint by the rules
// of the set, whoever calls, and which: NoHint when no rule decides about any of them.
// Where several ranges of sizes cover lo to hi only together, ok is false.
func Uniform(set uint64, lo, hi uintptr) (hint uintptr, ok bool) {
	const none = NoHint + 1
	some := uintptr(none) // the hint of rules that decide about some of the requests
	for ; set != 0; set &= set - 1 {
		r := ruleAt(set)
		if r.Max < uint64(lo) || r.Min > uint64(hi) {
			continue
		}
		hint = uintptr(r.Hint)
		if some != none && some != hint {
			return NoHint, false
		}
		if r.Min <= uint64(lo) && uint64(hi) <= r.Max && !r.Called() {
			return hint, true
		}
		some = hint
	}
	return NoHint, some == none
}

// CallerSet is the set of rules that hold for a call from an object, or that have no condition on
// the caller. depth 0 is the caller of malloc, 1 the caller of that, and so on to 3. lib is the
// object's path, a C string, and offset the address that the call returns to, less the object's
// load bias. A condition on a function's name is taken as met: see FunctionRules. For lib 0, an
// unknown caller, no condition on the caller is met.
func CallerSet(depth, lib, offset uintptr) uint64 {
	set := rules.active
	name := uintptr(0)
	if lib != 0 {
		name, _ = raw.BaseName(lib)
	}
	for rest := rules.called; rest != 0; rest &= rest - 1 {
		r := ruleAt(rest)
		c := &r.Site[depth&(config.SiteMax-1)]
		ok := depth != 0 || !r.Lib.Set() || holds(ruleList(), r.Lib, name)
		switch {
		case !c.Name.Set():
		case c.Offset == 0:
			ok = ok && lib != 0
		default: // a profile has the last byte of the call, one less
			ok = ok && uint64(offset)-c.Offset <= 1 && holds(ruleList(), c.Name, name)
		}
		if !ok {
			set &^= rest & -rest
		}
	}
	return set
}

// FunctionRules is the set of rules that name the function of the caller at depth.
func FunctionRules(depth uintptr) (set uint64) {
	for rest := rules.called; rest != 0; rest &= rest - 1 {
		if ruleAt(rest).Site[depth&(config.SiteMax-1)].Function() {
			set |= rest & -rest
		}
	}
	return set
}

// FunctionName is the name, a C string, of the function that the first rule of a set of
// FunctionRules names. Precondition: the set has a rule.
func FunctionName(depth uintptr, set uint64) uintptr {
	name, _ := ruleList().Pattern(ruleAt(set).Site[depth&(config.SiteMax-1)].Name)
	return name
}

// Match is the hint of the first rule of the set that holds for n bytes, or NoHint. The set is that
// of the thread and of the callers: ThreadSet & CallerSet.
func Match(set uint64, n uintptr) uintptr {
	for ; set != 0; set &= set - 1 {
		r := ruleAt(set)
		if r.Min <= uint64(n) && uint64(n) <= r.Max {
			return uintptr(r.Hint)
		}
	}
	return NoHint
}

// ruleList is the rules of Setup.
func ruleList() *config.RuleList { return (*config.RuleList)(raw.Ptr(rules.list)) }

// ruleAt is the first rule of a set. Precondition: the set has one.
func ruleAt(set uint64) *config.Rule {
	return &ruleList().Rule[bits.TrailingZeros64(set)&ruleMask]
}

// holds reports whether a pattern matches the C string at name; 0 matches none.
func holds(list *config.RuleList, g config.Glob, name uintptr) bool {
	at, n := list.Pattern(g)
	return name != 0 && glob(at, at+n, name)
}

// glob reports whether the pattern from p to end matches the whole C string at s: *
// stands for any bytes and ? for one. When the bytes after a * do not match, only the
// last * need try again one byte further: an earlier one has found its first match.
func glob(p, end, s uintptr) bool {
	star, from := uintptr(0), uintptr(0) // after the last *, and the end of the text it matches
	for raw.LoadByte(s) != 0 {
		switch {
		case p < end && raw.LoadByte(p) == '*':
			p++
			star, from = p, s
		case p < end && (raw.LoadByte(p) == '?' || raw.LoadByte(p) == raw.LoadByte(s)):
			p++
			s++
		case star != 0:
			from++
			p, s = star, from
		default:
			return false
		}
	}
	for p < end && raw.LoadByte(p) == '*' {
		p++
	}
	return p == end
}
