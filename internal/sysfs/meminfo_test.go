package sysfs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSwapTotal(t *testing.T) {
	defer func() { Meminfo = "" }()
	for text, want := range map[string]uint64{
		"MemTotal: 5 kB\nSwapTotal:        8 kB\nSwapFree: 1 kB\n": 8 << 10,
		"MemTotal: 5 kB\nSwapTotal:        0 kB\n":                 0,
		"MemTotal: 5 kB\nSwapCached:       7 kB\n":                 0,
		"": 0,
	} {
		Meminfo = filepath.Join(t.TempDir(), "meminfo")
		if err := os.WriteFile(Meminfo, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := SwapTotal(); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
	if Meminfo = "/nowhere"; SwapTotal() != 0 {
		t.Error("swap without the file")
	}
}
