package tiers

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/stats"
)

// settings are those of the test that runs; Setup keeps the address of their rules.
var settings config.Settings

// kept are the strings whose addresses were given away.
var kept [][]byte

// cstring is the address of a C string.
func cstring(s string) uintptr {
	b := append([]byte(s), 0)
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

// setup makes entries, of the form NAME=value without the TA_, the policy of the
// program.
func setup(tb testing.TB, program string, entries ...string) {
	tb.Helper()
	setupOn(tb, &apart, program, entries...)
}

// apart is the account of each tier where they are different memory.
var apart = [4]uintptr{0, 1, 2, 3}

// setupOn is setup where some tiers may be the same memory. Caps that contradict are no mistake.
func setupOn(tb testing.TB, account *[4]uintptr, program string, entries ...string) {
	tb.Helper()
	kept = nil
	var envp []uintptr
	for _, e := range entries {
		envp = append(envp, cstring("TA_"+e))
	}
	envp = append(envp, 0)
	if bad := config.Parse(&settings, uintptr(unsafe.Pointer(&envp[0]))); bad != 0 {
		tb.Fatalf("bad settings: %q", entries)
	}
	settings.ShareCaps(uintptr(unsafe.Pointer(&envp[0])), account, nowhere(tb))
	Setup(&settings, account, cstring(program))
}

// nowhere is a descriptor for lines that nobody reads.
func nowhere(tb testing.TB) uintptr {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f.Fd()
}

// filled is what Fill says.
func filled() (list [3]stats.Tier) {
	Fill(&report)
	copy(list[:], report.Tiers[:])
	return list
}

// report is static, for it cannot be made by new.
var report stats.Report

const (
	fast   = uintptr(config.TierFast)
	normal = uintptr(config.TierNormal)
	slow   = uintptr(config.TierSlow)

	hot     = uintptr(config.HintHot)
	warm    = uintptr(config.HintWarm)
	cold    = uintptr(config.HintCold)
	pinFast = uintptr(config.HintPinFast)
	prefer  = uintptr(config.HintPreferFast)
)

// reserve goes through with a request as a caller that has nothing cached.
func reserve(hint, n uintptr) (answer uintptr, asked []uintptr) {
	trimmed := uintptr(0)
	for {
		answer = Reserve(hint, n, trimmed)
		if answer&Trim == 0 {
			return answer, asked
		}
		tier := answer & slotMask
		asked = append(asked, tier)
		trimmed |= 1 << tier
	}
}

// figures are the counters of a tier in one line of a table.
type figures struct {
	current, exceeded, rerouted, routed, refused, violations uint64
}

func figuresOf(t stats.Tier) figures {
	return figures{t.BytesCurrent, t.SoftExceeded, t.Rerouted, t.RoutedSlow, t.Refused,
		t.CapacityViolations}
}

func allFigures() (list [3]figures) {
	for i, t := range filled() {
		list[i] = figuresOf(t)
	}
	return list
}

// words splits settings that are written in one string.
func words(s string) []string { return strings.Fields(s) }
