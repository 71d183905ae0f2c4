package main

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/tiers"
)

func TestRuleWords(t *testing.T) {
	v := checked(t, "TA_RULES=size>=64M,lib=libtorch*:prefer_fast; thread=io-?:COLD; "+
		"size=4K-1M,program=redis*:pin_fast; size<100:warm")
	want := []string{
		"size from 64 MiB, library libtorch*: prefer_fast, to FAST",
		"thread io-?: cold, to SLOW",
		"size 4 KiB to 1 MiB, program redis*: pin_fast, to FAST",
		"size to 99 B: warm, to NORMAL",
	}
	if v.settings.Rules.Count != 4 {
		t.Fatalf("%+v", v.mistakes)
	}
	for i, w := range want {
		if got := ruleWords(&v.settings.Rules, uintptr(i)); got != w {
			t.Errorf("rule %d: %q, not %q", i+1, got, w)
		}
	}
}

func TestHiddenBy(t *testing.T) {
	for rules, want := range map[string]int{
		"size>1M:cold; size>2M:hot":                    0,
		"size>2M:cold; size>1M:hot":                    -1,
		"lib=a*:cold; size>1M,lib=a*:hot":              0,
		"lib=a*:cold; size>1M,lib=b*:hot":              -1,
		"lib=a*:cold; lib=ab?:hot":                     0,
		"lib=a*:cold; size>1M:hot":                     -1,
		"site=f:cold; site=f<g:hot":                    0,
		"site=f<g:cold; site=f:hot":                    -1,
		"site=f:cold; site=f+0x1:hot":                  -1,
		"site=*:cold; site=f:hot":                      -1, // * is a function
		"site=a*+0x12:cold; site=ab+0x12<m,size=1:hot": 0,
		"site=a+0x12:cold; site=a+0x13:hot":            -1,
		"lib=a:cold; site=a+0x12:hot":                  -1,
		"thread=x:cold; thread=x,lib=b*,program=c:hot": 0,
		"program=x:cold; thread=x:hot":                 -1,
		"size<10:hot; size>10:cold; size=4-5:warm":     -2, // checked below
	} {
		v := checked(t, "TA_RULES="+rules)
		last := v.settings.Rules.Count - 1
		if want == -2 {
			if got := hiddenBy(&v.settings.Rules, 2); got != 0 {
				t.Errorf("%s: %d", rules, got)
			}
			continue
		}
		if got := hiddenBy(&v.settings.Rules, last); got != want {
			t.Errorf("%s: the last is hidden by %d, not %d", rules, got, want)
		}
	}
}

// TestCovers: a pattern covers another if it matches all that the other does.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"*", "x", true}, {"*", "*", true}, {"*", "a*b?", true}, {"x", "*", false},
		{"a*", "ab*", true}, {"ab*", "a*", false}, {"a*c", "abc", true}, {"a*c", "a*bc", true},
		{"a*c", "abcd", false}, {"a?", "ab", true}, {"a?", "a*", false}, {"a?", "a?", true},
		{"ab", "a?", false}, {"a*", "a", true}, {"a**", "a", true}, {"a", "ab", false},
		{"*b*", "ab", true}, {"*b", "abab", true}, {"?*", "*", false},
		{"*?", "ab*", false}, // it does cover it: the answer errs on this side only
	} {
		if got := covers(c.a, c.b); got != c.want {
			t.Errorf("covers(%q, %q) is %v", c.a, c.b, got)
		}
	}
}

func TestAudiences(t *testing.T) {
	v := checked(t, "TA_RULES=thread=a:hot;program=p,thread=b:hot;"+
		"thread=a,size>5:cold;program=p:warm")
	want := []audience{{"", ""}, {"", "a"}, {"", "b"}, {"p", ""}, {"p", "a"}, {"p", "b"}}
	if got := audiences(&v.settings.Rules); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestSlowSizes compares with what happens to each size: a class may stay on the fast
// path only if each request of it gets the hint that the fast path goes by.
func TestSlowSizes(t *testing.T) {
	for _, c := range []struct {
		rules string
		a     audience
		want  string
	}{
		{"size>=64M:cold", audience{}, ""},
		{"size>=1M:cold", audience{}, "983041 B to 4 MiB"},
		{"size<100:hot", audience{}, "0 B to 112 B"},
		{"size<=96:hot", audience{}, "0 B to 96 B"},
		{"lib=libx*:hot", audience{}, "0 B to 4 MiB"},
		{"thread=io:cold", audience{}, ""},
		{"thread=io:cold", audience{thread: "io"}, ""},
		{"thread=io:cold;size>=1M:hot", audience{thread: "io"}, ""},
		{"size>=1M:hot;thread=io:cold", audience{thread: "io"}, "983041 B to 4 MiB"},
		{"size>=1M,program=p:hot", audience{}, ""},
		{"size>=1M,program=p*:hot", audience{program: "p*"}, "983041 B to 4 MiB"},
		{"size=1000:hot;size=50000:cold", audience{}, "961 B to 1 KiB; 49153 B to 52 KiB"},
		{"size>=1M:warm", audience{}, "983041 B to 1 MiB"},
	} {
		v := checked(t, "TA_RULES="+c.rules)
		if got := strings.Join(slowSizes(v.settings, c.a), "; "); got != c.want {
			t.Errorf("%s for %+v: %q, not %q", c.rules, c.a, got, c.want)
		}
	}
}

// TestSlowSizesLib: the hint of a size that is not slow does not depend on who calls.
func TestSlowSizesLib(t *testing.T) {
	v := checked(t, "TA_RULES=size>=4K,lib=liba:hot;size<=64K,lib=libb:cold;size>=1M:cold",
		"TA_DEFAULT_HINT=warm")
	if got := strings.Join(slowSizes(v.settings, audience{}), "; "); got != "0 B to 4 MiB" {
		t.Errorf("slow: %q", got)
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	set := tiers.ThreadSet(0)
	if tiers.Match(set&tiers.CallerSet(0, cString(&pin, "/lib/libb"), 0),
		100) == tiers.Match(set&tiers.CallerSet(0, cString(&pin, "/lib/liba"), 0), 100) {
		t.Error("the rules of the test make no difference")
	}
	if sizeclass.MaxSize != 4<<20 {
		t.Error("the largest class has changed: so do the sizes here")
	}
}
