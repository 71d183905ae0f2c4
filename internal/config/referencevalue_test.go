package config

import (
	"regexp"
	"strconv"
	"strings"
)

var percentPattern = regexp.MustCompile(`^([0-9]{1,3})%$`)

// referPart stores a part in percent.
func referPart(dst *uint32, val string) bool {
	m := percentPattern.FindStringSubmatch(val)
	if m == nil {
		return false
	}
	n, _ := strconv.Atoi(m[1])
	return store(dst, uint32(n), n >= 1 && n <= 100)
}

func isTemplate(val string) bool {
	return len(val) <= 4000 &&
		templatePattern.MatchString(latin(val))
}

func isNameList(val string) bool {
	names := 0
	for _, name := range strings.Split(val, ",") {
		name = strings.Trim(name, " \t\r\n")
		if strings.Contains(name, "/") || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			return false
		}
		names += min(len(name), 1)
	}
	return names != 0
}

// latin is a string with a rune for each byte: a regular expression reads runes, and
// a path is bytes.
func latin(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

func asciiLower(s string) string {
	out := []byte(s)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 32
		}
	}
	return string(out)
}

func referBytes(s string) (uint64, bool) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	shift := shifts[asciiLower(m[2])]
	return n << shift, err == nil && n <= 1<<46>>shift
}

func referSize(s string) (uint64, bool) {
	n, ok := referBytes(s)
	return n, ok && n >= 1
}

func referRate(s string) (uint64, bool) {
	n, ok := referBytes(s)
	return n, ok && (n == 0 || n >= 1024)
}

func referTime(s string, most uint64) (uint64, bool) {
	if zeroPattern.MatchString(s) {
		return 0, true
	}
	m := timePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	unit := units[m[2]]
	return n * unit, err == nil && n <= most/unit
}

func shown(val string, most int) string {
	tail := ""
	if len(val) > most {
		val, tail = val[:most], "..."
	}
	out := []byte(val)
	for i, c := range out {
		if c < 0x20 || c > 0x7e {
			out[i] = '?'
		}
	}
	return string(out) + tail
}
