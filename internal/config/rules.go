package config

// RuleMax is the largest number of rules: a set of rules is a word with a bit for each.
const RuleMax = 64

// Rule gives a hint to the requests that meet all its conditions.
//
//	Min <= Max
type Rule struct {
	Min, Max uint64          // bytes asked for
	Thread   Glob            // the name of the thread
	Program  Glob            // the program's file name
	Lib      Glob            // the file name of the shared object that calls
	Site     [SiteMax]Caller // who calls malloc, and who calls that, as far as they matter
	Hint     uint32
}

// Glob is a pattern in the text of its RuleList. If the length is 0 there is no condition.
type Glob struct{ off, n uint32 }

// Called reports whether the rule depends on who calls malloc.
func (r *Rule) Called() bool { return r.Lib.Set() || r.Site[0].Name.Set() }

// Set reports whether there is a condition.
func (g Glob) Set() bool { return g.n != 0 }

// RuleList is TA_RULES. The first rule that matches decides.
//
//	Count <= RuleMax
type RuleList struct {
	Count uintptr
	Rule  [RuleMax]Rule
	text  Text // the patterns
}

// Pattern returns the address and the length of a pattern.
func (l *RuleList) Pattern(g Glob) (addr, n uintptr) {
	return l.text.Addr() + uintptr(g.off), uintptr(g.n)
}

// flaw is what is wrong with a rule.
type flaw uint32

const (
	sound flaw = iota
	badCondition
	badSize
	badSite
	badHint
	noHint
	emptyGlob
	folderGlob
	twice
	never
	tooMany
	tooLong
)

const noRules = "no rules"

// words describes a flaw, as a text before the part that has it, and what is accepted.
func (f flaw) words() (what, accepts string) {
	switch f {
	case badSize:
		return "bad size",
			"1 to 64T, an integer or one with K, M, G or T, or with = a range such as 4K-1M"
	case badSite:
		return "bad site", "OBJECT+0xOFFSET or FUNCTION, the caller of malloc first," +
			" and up to 3 callers of it, each after a <"
	case badHint:
		return "unknown hint", hintsAccepted
	case noHint:
		return "missing hint", "conditions, a colon, and " + hintsAccepted
	case emptyGlob:
		return "empty pattern", "a name, in which * stands for any text and ? for any byte"
	case folderGlob:
		return "a folder", "the name of a file without its folders"
	case twice:
		return "second of its kind", "thread, program, lib and site at most once in a rule"
	case never:
		return "no size fits", "sizes that can hold together"
	case tooMany:
		return "too many rules", "at most 64 rules"
	case tooLong:
		return "too much text", "patterns of at most 4095 bytes in all"
	}
	return "unknown condition", "size>=N, size>N, size<=N, size<N, size=N, size=N-N," +
		" thread=GLOB, program=GLOB, lib=GLOB or site=CALLER<CALLER"
}
