package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// reference is Parse written plainly, in ordinary Go.
func reference(entries []string, secure bool) outcome {
	o := defaults()
	seen := map[string]bool{}
	for _, entry := range entries {
		name, val, ok := strings.Cut(entry, "=")
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		if val == "" || secure && (name == "TA_STATS_FILE" || name == "TA_LOG_FILE") {
			continue
		}
		if accepts, using, ok := o.refer(name, val); !ok {
			o.lines = append(o.lines, fmt.Sprintf("tieralloc: %s=\"%s\": expected %s; using %s",
				name, shown(val), accepts, using))
		}
	}
	return o
}

var (
	timePattern     = regexp.MustCompile(`^([0-9]+)(ns|us|ms|s)$`)
	zeroPattern     = regexp.MustCompile(`^0+$`)
	templatePattern = regexp.MustCompile(`^(?s:[^%]|%[pe%])*$`)
	units           = map[string]uint64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
	levels          = map[string]uint32{"off": 0, "error": 1, "warn": 2, "info": 3, "debug": 4}
	switches        = map[string]bool{"0": false, "1": true}
)

// refer stores one good value; for a bad one it returns the words of the message.
func (o *outcome) refer(name, val string) (accepts, using string, ok bool) {
	switch name {
	case "TA_DISABLE":
		return "0 or 1", "0", referSwitch(&o.disable, val)
	case "TA_INTERPOSE":
		return "0 or 1", "1", referSwitch(&o.interpose, val)
	case "TA_STRICT":
		return "0 or 1", "0", referSwitch(&o.strict, val)
	case "TA_LOG":
		level, known := levels[val]
		if known {
			o.log = level
		}
		return "off, error, warn, info or debug", "off", known
	case "TA_PURGE_DELAY":
		d, good := referTime(val)
		if good {
			o.purgeDelay = d
		}
		return "a time such as 250ms (units ns, us, ms, s), 0 to 1h", "250ms", good
	case "TA_LOG_FILE":
		if ok = len(val) <= 4000; ok {
			o.logFile = val
		}
		return "a path of at most 4000 bytes", "standard error", ok
	case "TA_STATS_FILE":
		if ok = len(val) <= 4000 && goodTemplate(val); ok {
			o.statsFile = val
		}
		return "a path of at most 4000 bytes in which % begins %p (process id)," +
			" %e (program name) or %%", "no file", ok
	}
	return "", "", true
}

func referSwitch(dst *bool, val string) bool {
	on, known := switches[val]
	if known {
		*dst = on
	}
	return known
}

// goodTemplate works on Latin-1, since a regular expression reads runes and a path
// is bytes.
func goodTemplate(s string) bool {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return templatePattern.MatchString(string(runes))
}

func referTime(s string) (uint64, bool) {
	if zeroPattern.MatchString(s) {
		return 0, true
	}
	m := timePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	unit := units[m[2]]
	return n * unit, err == nil && n <= 3600e9/unit
}

func shown(val string) string {
	tail := ""
	if len(val) > shownMax {
		val, tail = val[:shownMax], "..."
	}
	out := []byte(val)
	for i, c := range out {
		if c < 0x20 || c > 0x7e {
			out[i] = '?'
		}
	}
	return string(out) + tail
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "TA_STRICT=1", "TA_STRICT=\nTA_STRICT=1", "TA_DISABLE=1\nTA_DISABLE=0\nTA_INTERPOSE=0",
		"TA_LOG=info\nTA_LOG_FILE=/tmp/l", "TA_STATS_FILE=/tmp/%e.%p%%", "TA_STATS_FILE=%q", "TA_STATS_FILE=%",
		"TA_PURGE_DELAY=250ms", "TA_PURGE_DELAY=3600s\nTA_PURGE_DELAY=x", "TA_PURGE_DELAY=3600000001us",
		"TA_PURGE_DELAY=0", "TA_PURGE_DELAY=99999999999999999999ns", "TA_PURGE_DELAY=1\x80\x1b", "TA_\nTA\nT\n=\nTA_LOG",
		"TA_LOG_FILE=" + strings.Repeat("x", 4001), "TA_LOG=" + strings.Repeat("%", 161),
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, secure bool) {
		entries := strings.Split(strings.ReplaceAll(text, "\x00", ""), "\n")
		got, want := run(t, entries, secure), reference(entries, secure)
		if !got.equal(want) {
			t.Errorf("%q:\n got %v\nwant %v", entries, got, want)
		}
	})
}
