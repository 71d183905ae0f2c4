package main

import (
	"strings"
	"testing"

	"tieralloc/stats/live"
)

func TestFrame(t *testing.T) {
	dead := process(t, 7, 1, live.Killed)
	unborn := process(t, 8, 1, live.Running)
	unborn.report = nil
	dead.report.Devices[0].BytesTotalSpilled = 0
	f := frame{list: []activity{{page: process(t, 9, 1, live.Running),
		rates: rates{allocs: 1500, bytes: 2048}}, {page: dead}, {page: unborn}}}
	text := squeeze(f.String())
	for _, words := range []string{
		"tieralloc: 2 running, 1 ended;", "1.5 k allocations/s, 2.0 KiB/s",
		"9 prog running", "7 prog killed", "8 prog running",
		"FAST 1.0 MiB ░░░░░░░░░░ 2% of 64 MiB hard",
		"GPU 0 " + size(dead.report.Devices[0].Tiers.Fast.BytesCurrent), "GPU 0 spilled",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is missing in\n%s", words, text)
		}
	}
	if strings.Contains(f.String(), "\x1b") {
		t.Error("plain text has escape sequences")
	}
	if n := strings.Count(f.String(), "\n"); n != 2+3+2*3+2+1 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

// TestBar: the colour says how near the caps are.
func TestBar(t *testing.T) {
	const green, yellow, red = "\x1b[32m", "\x1b[33m", "\x1b[31m"
	for _, c := range []struct {
		current, soft, hard uint64
		colour, words       string
	}{
		{50, 0, 100, green, "50% of 100 B hard"},
		{50, 60, 100, green, "50% of 100 B hard"},
		{70, 60, 100, yellow, "70% of 100 B hard"},
		{99, 60, 100, red, "99% of 100 B hard"},
		{99, 0, 100, red, "99% of 100 B hard"},
		{600, 60, 0, yellow, "1000% of 60 B soft"},
		{30, 60, 0, green, "50% of 60 B soft"},
	} {
		got := bar(&tier{BytesCurrent: c.current, CapacitySoft: c.soft, CapacityHard: c.hard})
		if !strings.Contains(got, c.colour) || !strings.HasSuffix(got, c.words) {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if got := bar(&tier{BytesCurrent: 5}); got != "" {
		t.Errorf("without a cap: %q", got)
	}
}
