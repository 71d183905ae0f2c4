package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const anySize = math.MaxUint64

// referRules is RuleList.parse written plainly.
func (o *outcome) referRules(val string) {
	const blanks = " \t\r\n"
	bad, last, room := false, false, 4095
	var list []plainRule
	for _, rule := range strings.Split(val, ";") {
		rule = strings.Trim(rule, blanks)
		if rule == "" || last {
			continue
		}
		var r plainRule
		var flaw, part string
		if len(list) == 64 {
			flaw, last = "too many rules: expected at most 64 rules", true
		} else {
			r, flaw, part = referRule(rule, blanks, &room)
			list = append(list, r)
		}
		if flaw == "" {
			continue
		}
		bad = true
		last = last || room < 0
		what, accepts, _ := strings.Cut(flaw, ":")
		if part != "" {
			what += fmt.Sprintf(" \"%s\"", shown(part, 60))
		}
		o.lines = append(o.lines, fmt.Sprintf("tieralloc: TA_RULES=\"%s\": %s:%s; using no rules",
			shown(rule, 160), what, accepts))
	}
	if !bad {
		o.rules = list
	}
}

// referRule reads one rule. flaw is what its line says after the rule, without the
// part that is wrong. room is what is left for patterns.
func referRule(rule, blanks string, room *int) (r plainRule, flaw, part string) {
	const words = "hot, warm, cold, pin_fast or prefer_fast"
	r.max = anySize
	conditions, hint, colon := strings.Cut(rule, ":")
	for _, c := range strings.Split(conditions, ",") {
		c = strings.Trim(c, blanks)
		if flaw := r.refer(c, blanks, room); flaw != "" {
			return r, flaw, c
		}
	}
	if r.min > r.max {
		return r, "no size fits: expected sizes that can hold together", conditions
	}
	hint = strings.Trim(hint, blanks)
	if !colon || hint == "" {
		return r, "missing hint: expected conditions, a colon, and " + words, ""
	}
	if !choose(&r.hint, hints, asciiLower(hint)) {
		return r, "unknown hint: expected " + words, hint
	}
	return r, "", ""
}

func (r *plainRule) refer(c, blanks string, room *int) (flaw string) {
	const unknown = "unknown condition: expected size>=N, size>N, size<=N, size<N, size=N, " +
		"size=N-N," +
		" thread=GLOB, program=GLOB, lib=GLOB or site=CALLER<CALLER"
	at := strings.IndexAny(c, "<>=")
	if at < 0 {
		return unknown
	}
	word, rest := asciiLower(strings.Trim(c[:at], blanks)), c[at:]
	if word == "size" {
		return r.referSize(rest, blanks)
	}
	if word == "site" && rest[0] == '=' {
		return r.referSite(strings.Trim(rest[1:], blanks), blanks, room)
	}
	dst := map[string]*string{"thread": &r.thread, "program": &r.program, "lib": &r.lib}[word]
	if dst == nil || rest[0] != '=' {
		return unknown
	}
	glob := strings.Trim(rest[1:], blanks)
	switch {
	case glob == "":
		return "empty pattern: expected a name, in which * stands for any text and ? for any byte"
	case *dst != "":
		return "second of its kind: expected thread, program, lib and site at most once in a rule"
	case word != "thread" && strings.Contains(glob, "/"):
		return "a folder: expected the name of a file without its folders"
	}
	*dst = glob
	if *room -= len(glob); *room < 0 {
		return "too much text: expected patterns of at most 4095 bytes in all"
	}
	return ""
}

var callerForm = regexp.MustCompile(`^([^+]+)$|^(.+)\+0[xX]([0-9a-fA-F]{1,16})$`)

func (r *plainRule) referSite(text, blanks string, room *int) (flaw string) {
	const bad = "bad site: expected OBJECT+0xOFFSET or FUNCTION, the caller of malloc first," +
		" and up to 3 callers of it, each after a <"
	if r.site != "" {
		return "second of its kind: expected thread, program, lib and site at most once in a rule"
	}
	for i, c := range strings.Split(text, "<") {
		m := callerForm.FindStringSubmatch(strings.Trim(c, blanks))
		if i == 4 || m == nil {
			return bad
		}
		offset, _ := strconv.ParseUint("0"+m[3], 16, 64)
		if m[3] != "" && offset == 0 {
			return bad
		}
		if strings.Contains(m[1]+m[2], "/") {
			return "a folder: expected the name of a file without its folders"
		}
		if *room -= len(m[1]+m[2]) + 1; *room < 0 {
			return "too much text: expected patterns of at most 4095 bytes in all"
		}
		if i > 0 {
			r.site += "<"
		}
		r.site += m[1] + m[2]
		if offset != 0 {
			r.site += fmt.Sprintf("+0x%x", offset)
		}
	}
	return ""
}

func (r *plainRule) referSize(rest, blanks string) (flaw string) {
	for _, op := range []string{">=", "<=", ">", "<", "="} { // the longer ones first
		text, found := strings.CutPrefix(rest, op)
		if !found {
			continue
		}
		from, to, isRange := strings.Cut(text, "-")
		if op != "=" || !isRange {
			from, to = text, text
		}
		n, ok1 := referSize(strings.Trim(from, blanks))
		m, ok2 := referSize(strings.Trim(to, blanks))
		if !ok1 || !ok2 || n > m {
			break
		}
		least := map[string]uint64{">=": n, ">": n + 1, "=": n}[op]
		most := map[string]uint64{"<=": n, "<": n - 1, "=": m}
		if x, limited := most[op]; limited {
			r.max = min(r.max, x)
		}
		r.min = max(r.min, least)
		return ""
	}
	return "bad size: expected 1 to 64T, an integer or one with K, M, G or T, or with = a range " +
		"such as 4K-1M"
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rules string
		want  []plainRule
	}{
		{"", nil},
		{" ", nil},
		{";", nil},
		{" ; ;\t;\n", nil},
		{"size>=64M:cold", []plainRule{{64 << 20, anySize, "", "", "", "", HintCold}}},
		{"size>64M:cold", []plainRule{{64<<20 + 1, anySize, "", "", "", "", HintCold}}},
		{"size<=4K:hot", []plainRule{{0, 4096, "", "", "", "", HintHot}}},
		{"size<4k:hot", []plainRule{{0, 4095, "", "", "", "", HintHot}}},
		{"size<1:hot", []plainRule{{0, 0, "", "", "", "", HintHot}}},
		{"size=4K:hot", []plainRule{{4096, 4096, "", "", "", "", HintHot}}},
		{"size=4K-1M:hot", []plainRule{{4096, 1 << 20, "", "", "", "", HintHot}}},
		{"size=7-7:hot;", []plainRule{{7, 7, "", "", "", "", HintHot}}},
		{"size>=64T:hot", []plainRule{{1 << 46, anySize, "", "", "", "", HintHot}}},
		{"size>4K,size<1M:pin_fast", []plainRule{{4097, 1<<20 - 1, "", "", "", "", HintPinFast}}},
		{"size>=4K,size=1-4K:Pin_Fast", []plainRule{{4096, 4096, "", "", "", "", HintPinFast}}},
		{"thread=io-*:cold", []plainRule{{0, anySize, "io-*", "", "", "", HintCold}}},
		{"thread=kworker/0:cold", []plainRule{{0, anySize, "kworker/0", "", "", "", HintCold}}},
		{"program=python3.?:warm", []plainRule{{0, anySize, "", "python3.?", "", "", HintWarm}}},
		{"lib=libtorch*:prefer_fast", []plainRule{{0, anySize, "", "", "libtorch*", "",
			HintPreferFast}}},
		{"lib==x=<>:hot", []plainRule{{0, anySize, "", "", "=x=<>", "", HintHot}}},
		{" Size >= 64m , LIB = lib c.so ,\n thread = [a-b]\\ : Hot ; " +
			"program=p,lib=l,thread=t,size=1:WARM ; ", []plainRule{
			{64 << 20, anySize, "[a-b]\\", "", "lib c.so", "", HintHot},
			{1, 1, "t", "p", "l", "", HintWarm}}},
		{"site=main:hot", []plainRule{{0, anySize, "", "", "", "main", HintHot}}},
		{"lib=l,SITE = a*+0XfF0 < _ZN1a1bEv\t<libstdc++.so.?+0x1<d,size=1:hot", []plainRule{
			{1, 1, "", "", "l", "a*+0xff0<_ZN1a1bEv<libstdc++.so.?+0x1<d", HintHot}}},
		{"site=" + strings.Repeat("b", 4094) + ":cold",
			[]plainRule{{0, anySize, "", "", "", strings.Repeat("b", 4094), HintCold}}},
		{"lib=\xff\xfe*:hot", []plainRule{{0, anySize, "", "", "\xff\xfe*", "", HintHot}}},
		{"lib=" + strings.Repeat("a", 4095) + ":hot",
			[]plainRule{{0, anySize, "", "", strings.Repeat("a", 4095), "", HintHot}}},
		{strings.Repeat("size=9:hot;", 64), slices.Repeat([]plainRule{
			{9, 9, "", "", "", "", HintHot}}, 64)},
	} {
		entries := []string{"TA_RULES=" + c.rules}
		want := with(func(o *outcome) { o.rules = c.want })
		if got := run(t, entries); !got.equal(want) {
			t.Errorf("%.100q:\n got %+v\nwant %+v", c.rules, got, want)
		}
		if got := reference(entries); !got.equal(want) {
			t.Errorf("the reference on %.100q:\n got %+v\nwant %+v", c.rules, got, want)
		}
	}
}

// TestBadRules: each bad rule is a line that says which part is wrong, and no rule
// holds then, wherever the good ones stand.
func TestBadRules(t *testing.T) {
	const (
		condition = "expected size>=N, size>N, size<=N, size<N, size=N, size=N-N, thread=GLOB, " +
			"program=GLOB, lib=GLOB or site=CALLER<CALLER"
		size = "expected 1 to 64T, an integer or one with K, M, G or T, or with = a range " +
			"such as 4K-1M"
		words   = "hot, warm, cold, pin_fast or prefer_fast"
		missing = "missing hint: expected conditions, a colon, and " + words
		glob    = "expected a name, in which * stands for any text and ? for any byte"
		twice   = "expected thread, program, lib and site at most once in a rule"
		folder  = "expected the name of a file without its folders"
		site    = "expected OBJECT+0xOFFSET or FUNCTION, the caller of malloc first, and up to " +
			"3 callers of it, each after a <"
	)
	for _, c := range []struct{ rule, want string }{
		{"sise>=64M:cold", `unknown condition "sise>=64M": ` + condition},
		{"size 64M:cold", `unknown condition "size 64M": ` + condition},
		{"cold", `unknown condition "cold": ` + condition},
		{":cold", `unknown condition: ` + condition},
		{"size=1,:cold", `unknown condition: ` + condition},
		{",size=1:cold", `unknown condition: ` + condition},
		{"thread>=io:cold", `unknown condition "thread>=io": ` + condition},
		{"libs=x:cold", `unknown condition "libs=x": ` + condition},
		{"=x:cold", `unknown condition "=x": ` + condition},
		{"size>=64Q:cold", `bad size "size>=64Q": ` + size},
		{"size>=64MB:cold", `bad size "size>=64MB": ` + size},
		{"size>=64MiB:cold", `bad size "size>=64MiB": ` + size},
		{"size>=:cold", `bad size "size>=": ` + size},
		{"size>=0:cold", `bad size "size>=0": ` + size},
		{"size<0:cold", `bad size "size<0": ` + size},
		{"size==4K:cold", `bad size "size==4K": ` + size},
		{"size>>4K:cold", `bad size "size>>4K": ` + size},
		{"size> =4K:cold", `bad size "size> =4K": ` + size},
		{"size>=-4K:cold", `bad size "size>=-4K": ` + size},
		{"size=1.5K:cold", `bad size "size=1.5K": ` + size},
		{"size=1M-4K:cold", `bad size "size=1M-4K": ` + size},
		{"size=4K-:cold", `bad size "size=4K-": ` + size},
		{"size=-4K:cold", `bad size "size=-4K": ` + size},
		{"size=1-2-3:cold", `bad size "size=1-2-3": ` + size},
		{"size<4K-1M:cold", `bad size "size<4K-1M": ` + size},
		{"size>65T:cold", `bad size "size>65T": ` + size},
		{"size>99999999999999999999:cold", `bad size "size>99999999999999999999": ` + size},
		{"size>1M,size<4K:cold",
			`no size fits "size>1M,size<4K": expected sizes that can hold together`},
		{"size>=64M:cool", `unknown hint "cool": expected ` + words},
		{"size>=64M:hot:cold", `unknown hint "hot:cold": expected ` + words},
		{"size>=64M:hot,cold", `unknown hint "hot,cold": expected ` + words},
		{"size>=64M:pin-fast", `unknown hint "pin-fast": expected ` + words},
		{"size>=64M", missing},
		{"size>=64M:", missing},
		{"size>=64M: ,", `unknown hint ",": expected ` + words},
		{"lib=:cold", `empty pattern "lib=": ` + glob},
		{"thread= :cold", `empty pattern "thread=": ` + glob},
		{"program=,size=1:cold", `empty pattern "program=": ` + glob},
		{"lib=a,lib=b:cold", `second of its kind "lib=b": ` + twice},
		{"thread=a,thread=a:cold", `second of its kind "thread=a": ` + twice},
		{"lib=/usr/lib/libc*:cold", `a folder "lib=/usr/lib/libc*": ` + folder},
		{"program=bin/x:cold", `a folder "program=bin/x": ` + folder},
		{"site=:cold", `bad site "site=": ` + site},
		{"site=a<:cold", `bad site "site=a<": ` + site},
		{"site=<a:cold", `bad site "site=<a": ` + site},
		{"site=a<b<c<d<e:cold", `bad site "site=a<b<c<d<e": ` + site},
		{"site=a+1:cold", `bad site "site=a+1": ` + site},
		{"site=a+0x:cold", `bad site "site=a+0x": ` + site},
		{"site=a+0x0:cold", `bad site "site=a+0x0": ` + site},
		{"site=a+0x1g:cold", `bad site "site=a+0x1g": ` + site},
		{"site=a+0x12345678123456781:cold", `bad site "site=a+0x12345678123456781": ` + site},
		{"site=+0x1:cold", `bad site "site=+0x1": ` + site},
		{"site=libstdc++.so.6:cold", `bad site "site=libstdc++.so.6": ` + site},
		{"site=a,site=b:cold", `second of its kind "site=b": ` + twice},
		{"site=/usr/bin/a+0x1:cold", `a folder "site=/usr/bin/a+0x1": ` + folder},
		{"site<a:cold", `unknown condition "site<a": ` + condition},
		{"site=" + strings.Repeat("b", 4095) + ":cold",
			`too much text "site=` + strings.Repeat("b", 55) +
				`...": expected patterns of at most 4095 bytes in all`},
		{"lib=\x1b[31m,x=\x80:cold", `unknown condition "x=?": ` + condition},
		{"lib=" + strings.Repeat("b", 4096) + ":cold",
			`too much text "lib=` + strings.Repeat("b", 56) +
				`...": expected patterns of at most 4095 bytes in all`},
	} {
		line := fmt.Sprintf("tieralloc: TA_RULES=\"%s\": %s; using no rules", shown(c.rule, 160),
			c.want)
		for _, list := range []string{c.rule, "size=1:hot;" + c.rule + " ;thread=t:hot",
			c.rule + ";" + c.rule} {
			entries := []string{"TA_RULES=" + list, "TA_RULES=size=1:hot"}
			want := with(func(o *outcome) {
				o.lines = slices.Repeat([]string{line},
					strings.Count(list, c.rule))
			})
			if strings.Contains(c.want, "too much") { // what comes after that is not looked at
				want.lines = want.lines[:1]
			}
			if got := run(t, entries); !got.equal(want) {
				t.Errorf("%.100q:\n got %+v\nwant %+v", list, got, want)
			}
			if got := reference(entries); !got.equal(want) {
				t.Errorf("the reference on %.100q:\n got %+v\nwant %+v", list, got, want)
			}
		}
	}
}

// TestTooManyRules: one line, however many there are too many.
func TestTooManyRules(t *testing.T) {
	for _, n := range []int{65, 66, 1000} {
		got := run(t, []string{"TA_RULES=" + strings.Repeat("size=9:hot;", n)})
		want := with(func(o *outcome) {
			o.lines = []string{`tieralloc: TA_RULES="size=9:hot": too many rules: expected at most 64 rules; using no rules`}
		})
		if !got.equal(want) {
			t.Errorf("%d: %+v", n, got)
		}
	}
}

func FuzzRules(f *testing.F) {
	for _, seed := range []string{
		"size>=64M:cold; lib=libtorch*:prefer_fast; thread=io-*:cold",
		"size=4K-1M,program=a?b*:pin_fast;", "a:b", ":", ";;",
		"size<1:hot;size>1 , size<=2:WARM;size<3",
		"lib=/x:hot;lib=,lib=:hot;thread=/,program=a/:hot", "size=\t1\n-\r2 :hot",
		"lib=" + strings.Repeat("x", 4090) + ":hot;lib=abcde:hot;lib=f:x;lib=g:hot",
		strings.Repeat("size=9:hot;", 65), strings.Repeat(":;", 70),
		"SIZE=1K:HOT;THREAD=T:COLD;PROGRAM=P:WARM;LIB=L:HOT",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries := []string{"TA_RULES=" + strings.ReplaceAll(text, "\x00", "")}
		got, want := run(t, entries), reference(entries)
		if !got.equal(want) {
			t.Errorf("%q:\n got %+v\nwant %+v", entries, got, want)
		}
	})
}
