package main

import (
	"math"
	"testing"
)

func TestUnits(t *testing.T) {
	for got, want := range map[string]string{
		size(0):                       "0 B",
		size(1023):                    "1023 B",
		size(1536):                    "1.5 KiB",
		size(256 << 20):               "256 MiB",
		size(math.MaxUint64):          "16 EiB",
		limit(0):                      none,
		limit(4096):                   "4.0 KiB",
		count(1234567):                "1,234,567",
		count(math.MaxUint64):         "18446744073709551615",
		rate(0.4):                     "0",
		rate(999):                     "999",
		rate(120_400):                 "120.4 k",
		byteRate(-1):                  none,
		byteRate(3 << 20):             "3.0 MiB/s",
		byteRate(math.Inf(1)):         none,
		duration(999):                 "999ns",
		duration(1_234_567):           "1.23ms",
		duration(61_500_000_000):      "1m1.5s",
		duration(12_345_678_901):      "12.3s",
		duration(math.MaxUint64):      "over 292 years",
		percent(1, 0):                 none,
		percent(1, 3):                 "33%",
		percent(56<<20, 1<<20):        "5600%",
		plural(1, "mistake"):          "1 mistake",
		plural(0, "mistake"):          "0 mistakes",
		exact(0):                      "0 B",
		exact(1025):                   "1025 B",
		exact(64 << 20):               "64 MiB",
		exact(1 << 60):                "1048576 TiB",
		rangeWords(0, 99):             "to 99 B",
		rangeWords(7, 7):              "7 B",
		rangeWords(4096, 1<<20):       "4 KiB to 1 MiB",
		rangeWords(5, math.MaxUint64): "from 5 B",
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestPrintable: nothing that a program calls itself reaches the terminal as a command.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"redis-server":    "redis-server",
		"a b":             "a b",
		"\x1b[2Jx\r\n":    "?[2Jx??",
		"\xff\xfe":        "??",
		"naïve":           "naïve",
		"a\u202eb\u009bc": "a?b?c",
	} {
		if got := printable(in); got != want {
			t.Errorf("%q is shown as %q, not %q", in, got, want)
		}
	}
}
