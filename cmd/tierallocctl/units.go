package main

import (
	"math"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// none stands in tables for a figure that is missing, or for no limit.
const none = "-"

// size writes a number of bytes with a unit, in powers of 1024.
func size(n uint64) string { return humanize.IBytes(n) }

// limit is size; 0 means that there is no limit.
func limit(n uint64) string {
	if n == 0 {
		return none
	}
	return size(n)
}

// count writes a whole number with separators of thousands.
func count(n uint64) string {
	if n > math.MaxInt64 {
		return strconv.FormatUint(n, 10)
	}
	return humanize.Comma(int64(n))
}

// plural writes a number of things.
func plural[N int | uint64](n N, word string) string {
	return count(uint64(n)) + " " + english.PluralWord(int(n), word, "")
}

// rate writes a number per second in few characters.
func rate(v float64) string {
	if v < 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return humanize.SIWithDigits(v, 1, "")
}

// byteRate writes a number of bytes per second.
func byteRate(v float64) string {
	if v < 0 || v >= math.MaxUint64 {
		return none
	}
	return size(uint64(v)) + "/s"
}

// duration writes a time in nanoseconds with about three digits.
func duration(ns uint64) string {
	if ns > math.MaxInt64 {
		return "over 292 years"
	}
	d := time.Duration(ns)
	for unit := time.Duration(1); unit < time.Second; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second).String()
}

// ratio writes a part of one in percent.
func ratio(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + "%" }

// percent writes part of whole in percent.
func percent(part, whole uint64) string {
	if whole == 0 {
		return none
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 0, 64) + "%"
}
