package tiers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
)

// globs are the patterns met so far.
var globs = map[string]*regexp.Regexp{}

// globPattern is a pattern as a regular expression over Latin-1: it reads runes, and
// names are bytes.
func globPattern(pattern string) *regexp.Regexp {
	if known := globs[pattern]; known != nil {
		return known
	}
	var b strings.Builder
	b.WriteString(`^(?s:`)
	for i := range len(pattern) {
		switch c := pattern[i]; c {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(rune(c))))
		}
	}
	b.WriteString(`)$`)
	globs[pattern] = regexp.MustCompile(b.String())
	return globs[pattern]
}

func latin(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

func matches(pattern, name string) bool { return globPattern(pattern).MatchString(latin(name)) }

// globbed is glob on Go's strings.
func globbed(pattern, name string) bool {
	at := cstring(pattern)
	return glob(at, at+uintptr(len(pattern)), cstring(name))
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"***", "", true},
		{"?", "", false},
		{"?", "a", true}, {"?", "ab", false}, {"a", "a", true}, {"a", "A", false},
		{"ab", "a", false}, {"a", "ab", false},
		{"a*", "a", true}, {"*a", "ba", true}, {"*a", "ab", false}, {"*ab", "aab", true},
		{"*ab", "abab", true},
		{"a*b*c", "aXbYc", true}, {"a*b*c", "abcb", false}, {"a*b*c", "abcbc", true},
		{"*a*", "xay", true},
		{"lib*.so.?", "libc.so.6", true}, {"lib*.so.?", "libc.so.10", false},
		{"io-*", "io-3", true}, {"?*?", "a", false},
		{"?*?", "ab", true}, {"[a]", "a", false}, {"[a]", "[a]", true}, {`\*`, `\x`, true},
		{`\*`, "*", false},
		{"*?*?", "ab", true}, {"*\xff?", "a\xff\xfe", true}, {"**a**b", "xxaxxb", true},
	} {
		if got := globbed(c.pattern, c.name); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.name, got)
		}
		if matches(c.pattern, c.name) != c.want {
			t.Errorf("the reference on %q, %q", c.pattern, c.name)
		}
	}
	// Work is bounded by the product of the lengths: with backtracking to every * this
	// would not end.
	long := strings.Repeat("a", 4000)
	if globbed(strings.Repeat("*a", 100)+"b", long) || !globbed(strings.Repeat("*a", 100), long) {
		t.Error("many stars")
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"a*b?", "axxbx"}, {"**", ""}, {"*a*a*a", "aaaa"}, {"?*", "\xff"},
		{"x", "y"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		name, _, _ = strings.Cut(name, "\x00")
		pattern, _, _ = strings.Cut(pattern, "\x00")
		if len(pattern) > 200 || len(name) > 1000 {
			return
		}
		kept = nil
		if got, want := globbed(pattern, name), matches(pattern, name); got != want {
			t.Fatalf("%q on %q: %v", pattern, name, got)
		}
	})
}

func TestRulesOff(t *testing.T) {
	setup(t, "prog")
	if RulesOn() || NeedsCaller() || NeedsThread() || ThreadSet(0) != 0 ||
		ThreadSet(cstring("x")) != 0 {
		t.Error("there are rules")
	}
	if Base(0, 3) != 3 || Match(0&CallerSet(0, 0, 0), 5) != NoHint {
		t.Error("they say something")
	}
	if hint, ok := Uniform(0, 0, math.MaxUint64); hint != NoHint || !ok {
		t.Error("and not always the same")
	}
}

func TestProgramRules(t *testing.T) {
	const list = "RULES=program=redis*,lib=x:hot; program=python3.?,thread=t:cold; " +
		"program=*,size=9:warm"
	for _, c := range []struct {
		program          string
		on, lib, threads bool
		set              uint64
	}{
		{"redis-server", true, true, false, 0b101},
		{"python3.11", true, false, false, 0b100},
		{"python3.9", true, false, true, 0b100},
		{"", true, false, false, 0b100}, // an empty name is one
	} {
		setup(t, c.program, list)
		if RulesOn() != c.on || NeedsCaller() != c.lib || NeedsThread() != c.threads ||
			ThreadSet(0) != c.set {
			t.Errorf("%q: %v, %v, %v, %b", c.program, RulesOn(), NeedsCaller(), NeedsThread(),
				ThreadSet(0))
		}
	}
	setup(t, "prog", "RULES=program=redis:hot")
	if RulesOn() {
		t.Error("rules for another program are on")
	}
	Setup(&settings, &apart, 0)
	if RulesOn() {
		t.Error("an unknown program has a name")
	}
}

func TestThreadSet(t *testing.T) {
	setup(t, "prog", "RULES=thread=io-*:cold;size=5:hot;"+
		"thread=io-1,program=x:hot;thread=??-1,lib=z:warm")
	for name, want := range map[string]uint64{"io-1": 0b1011, "io-22": 0b0011, "ab-1": 0b1010,
		"": 0b0010, "IO-1": 0b1010} {
		if got := ThreadSet(cstring(name)); got != want {
			t.Errorf("%q: %b", name, got)
		}
	}
	if ThreadSet(0) != 0b0010 {
		t.Errorf("no name: %b", ThreadSet(0))
	}
}

func TestMatch(t *testing.T) {
	setup(t, "prog", "RULES=size<=64,lib=libtorch*:hot; size=100-200:cold; "+
		"lib=libtorch*:prefer_fast; size>=1M:pin_fast; size>2M:warm")
	set := ThreadSet(0)
	for _, c := range []struct {
		n    uintptr
		lib  string
		want uintptr
	}{
		{64, "/usr/lib/libtorch_cpu.so", hot}, {65, "/usr/lib/libtorch_cpu.so", prefer},
		{100, "libtorch.so", cold},
		{0, "libtorch", hot}, {200, "", cold}, {201, "", NoHint}, {1 << 20, "/a/libtorch", prefer},
		{1 << 20, "/libtorch/a", pinFast},
		{3 << 20, "libtorc", pinFast}, {64, "/x/", NoHint}, {99, "none", NoHint},
	} {
		lib := uintptr(0)
		if c.lib != "none" {
			lib = cstring(c.lib)
		}
		if got := Match(set&CallerSet(0, lib, 0), c.n); got != c.want {
			t.Errorf("%d bytes from %q: %d", c.n, c.lib, got)
		}
	}
	if got := Match(set&CallerSet(0, 0, 0), 64); got != NoHint {
		t.Errorf("an unknown caller matches: %d", got)
	}
	setup(t, "prog", "RULES=lib=*:hot")
	if Match(1&CallerSet(0, 0, 0), 1) != NoHint ||
		Match(1&CallerSet(0, cstring(""), 0), 1) != hot ||
		Match(1&CallerSet(0, cstring("x/y"), 0), 1) != hot {
		t.Error("lib=* matches every known caller and no unknown one")
	}
}

func TestCallerSet(t *testing.T) {
	setup(t, "prog", "RULES=site=f:hot; site=liba*+0x12<prog+0x34:cold;"+
		"lib=libb,site=g<*+0xff:warm;size>1:hot; lib=libb:cold; program=x,site=f:hot")
	if !NeedsCaller() || DeepRules() != 0b00110 {
		t.Errorf("deep: %b", DeepRules())
	}
	for _, c := range []struct {
		depth  uintptr
		lib    string
		offset uintptr
		want   uint64
	}{
		{0, "", 0x12, 0b01000}, {0, "/x/liba.so", 0x12, 0b01011}, {0, "liba", 0x13, 0b01011},
		{0, "liba", 0x14, 0b01001}, {0, "liba", 0x11, 0b01001}, {0, "libb", 0x12, 0b11101},
		{1, "", 0x34, 0b11001}, {1, "/bin/prog", 0x34, 0b11011}, {1, "prog", 0xff, 0b11101},
		{1, "libb", 0x100, 0b11101}, {2, "", 0, 0b11111}, {3, "prog", 1, 0b11111},
	} {
		lib := uintptr(0)
		if c.lib != "" {
			lib = cstring(c.lib)
		}
		if got := CallerSet(c.depth, lib, c.offset); got != c.want {
			t.Errorf("depth %d, %q+%#x: %05b, not %05b", c.depth, c.lib, c.offset, got, c.want)
		}
	}
	if FunctionRules(0) != 0b00101 || FunctionRules(1) != 0 {
		t.Errorf("functions: %b, %b", FunctionRules(0), FunctionRules(1))
	}
	name := (*byte)(raw.Ptr(FunctionName(0, 0b00100)))
	if text := string(unsafe.Slice(name, 2)); text != "g\x00" {
		t.Errorf("the function is %q", text)
	}
}

func TestBase(t *testing.T) {
	setup(t, "prog", "RULES=size<1M:cold; lib=x:hot; thread=io:prefer_fast; "+
		"program=prog:pin_fast; thread=*:cold")
	if got := Base(ThreadSet(0), warm); got != pinFast {
		t.Errorf("%d", got)
	}
	if got := Base(ThreadSet(cstring("io")), warm); got != prefer {
		t.Errorf("thread io: %d", got)
	}
	if got := Base(0b10011, hot); got != cold {
		t.Errorf("a set without the rules for all: %d", got)
	}
	setup(t, "prog", "RULES=size>1M:hot; size<1M:hot; lib=x:hot")
	if got := Base(ThreadSet(0), cold); got != cold {
		t.Errorf("the fallback: %d", got)
	}
}

func TestUniform(t *testing.T) {
	for _, c := range []struct {
		rules  string
		lo, hi uintptr
		want   uintptr
		ok     bool
	}{
		{"size>=100:cold", 0, 99, NoHint, true}, {"size>=100:cold", 100, 100, cold, true},
		{"size>=100:cold", 50, 100, NoHint, false},
		{"size>=100:cold", 101, math.MaxUint64, cold, true},
		{"size=10-20:cold", 10, 20, cold, true}, {"size=10-20:cold", 9, 20, NoHint, false},
		{"size=10-20:cold", 21, 30, NoHint, true},
		{"lib=*:cold", 5, 5, NoHint, false}, {"lib=x:cold;size<100:cold", 5, 50, cold, true},
		{"lib=x:cold;size<100:hot", 5, 50, NoHint, false},
		{"lib=x,size>100:cold;size<50:hot", 5, 20, hot, true},
		{"size=10:hot;program=prog:hot", 0, 100, hot, true},
		{"size=10:hot;program=prog:warm", 0, 100, NoHint, false},
		{"size=10:hot;program=prog:warm", 11, 100, warm, true},
		{"size=10:hot;size=20:hot", 10, 20, NoHint, false},
	} {
		setup(t, "prog", "RULES="+c.rules)
		if hint, ok := Uniform(ThreadSet(0), c.lo, c.hi); hint != c.want || ok != c.ok {
			t.Errorf("%s: %d to %d: %d, %v", c.rules, c.lo, c.hi, hint, ok)
		}
	}
}

// plain is a rule that the reference reads.
type plain struct {
	lo, hi               uint64
	thread, program, lib string
	hint                 int
}

// TestRulesModel compares random lists of rules with reading them one by one.
func TestRulesModel(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	names := []string{"", "a", "ab", "abc", "b", "io-1", "libx.so", "prog"}
	patterns := []string{"", "", "", "*", "a*", "?b*", "b", "io-?", "lib*", "zzz"}
	draw := func(list []string) string { return list[r.IntN(len(list))] }
	uniform := 0
	for range 3000 {
		var list []plain
		var text []string
		for range 1 + r.IntN(6) {
			p := plain{lo: 0, hi: math.MaxUint64, thread: draw(patterns), program: draw(patterns),
				lib: draw(patterns), hint: r.IntN(5)}
			var conditions []string
			if r.IntN(2) == 0 {
				p.lo = 1 + r.Uint64N(20)
				p.hi = p.lo + r.Uint64N(20)
				conditions = append(conditions, fmt.Sprintf("size=%d-%d", p.lo, p.hi))
			}
			for what, glob := range map[string]string{"thread": p.thread, "program": p.program,
				"lib": p.lib} {
				if glob != "" {
					conditions = append(conditions, what+"="+glob)
				}
			}
			if len(conditions) == 0 {
				conditions, p.lo = []string{"size>=1"}, 1
			}
			list = append(list, p)
			text = append(text, strings.Join(conditions, ",")+":"+hintWords[p.hint])
		}
		program, thread := draw(names), draw(names)
		setup(t, program, "RULES="+strings.Join(text, ";"))
		set := ThreadSet(cstring(thread))
		first := func(n uint64, lib string, known bool) uintptr {
			i := slices.IndexFunc(list, func(p plain) bool {
				return n >= p.lo && n <= p.hi && (p.thread == "" || matches(p.thread, thread)) &&
					(p.program == "" || matches(p.program, program)) &&
					(p.lib == "" || known && matches(p.lib, path.Base("/"+lib)))
			})
			if i < 0 {
				return NoHint
			}
			return uintptr(list[i].hint)
		}
		for range 4 {
			n, lib := r.Uint64N(50), draw(names[1:])
			if got, want := Match(set&CallerSet(0, cstring("/dir/"+lib), 0), uintptr(n)),
				first(n, lib, true); got != want {
				t.Fatalf("%s: program %q, thread %q, lib %q, %d bytes: %d, not %d", text, program,
					thread, lib, n, got, want)
			}
			if got, want := Match(set&CallerSet(0, 0, 0), uintptr(n)),
				first(n, "", false); got != want {
				t.Fatalf("%s: program %q, thread %q, %d bytes: %d, not %d", text, program, thread,
					n, got, want)
			}
		}
		lo := r.Uint64N(40)
		hi := lo + r.Uint64N(10)
		hint, ok := Uniform(set, uintptr(lo), uintptr(hi))
		if !ok {
			continue
		}
		uniform++
		for n := lo; n <= hi; n++ {
			for _, lib := range names[1:] {
				if got := first(n, lib, true); got != hint || first(n, "", false) != hint {
					t.Fatalf("%s: program %q, thread %q: %d to %d bytes are said to get %d, but "+
						"%d from %q get %d", text, program, thread,
						lo, hi, hint, n, lib, got)
				}
			}
		}
	}
	if uniform < 300 {
		t.Errorf("only %d of the ranges were uniform", uniform)
	}
}
