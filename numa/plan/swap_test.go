package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/cgroup"
	"tieralloc/internal/config"
	"tieralloc/internal/sysfs"
	"tieralloc/numa"
)

// TestSwapUnused: each reason not to use swap is told apart.
func TestSwapUnused(t *testing.T) {
	dir := t.TempDir()
	sysfs.Meminfo, sysfs.Mounted = filepath.Join(dir, "meminfo"), dir
	cgroup.Self = filepath.Join(dir, "self")
	t.Cleanup(func() { sysfs.Meminfo, sysfs.Mounted, cgroup.Self = "", "", "" })
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("self", "0::/\n")
	for _, c := range []struct {
		simulated bool
		soft      uint64
		softcap   uint32
		total     string
		most      string
		want      string
	}{
		{true, 1, config.SoftcapFollow, "8", "max", ""},
		{false, 1, config.SoftcapFollow, "8", "max", "the tiers are different memory"},
		{true, 1, config.SoftcapWarn, "8", "max", "it needs TA_ON_SOFTCAP=follow"},
		{true, 0, config.SoftcapFollow, "8", "max", "no tier has a soft cap"},
		{true, 1, config.SoftcapFollow, "0", "max", "there is no swap (SwapTotal"},
		{true, 1, config.SoftcapFollow, "8", "0", "the control group allows none"},
	} {
		write("meminfo", "SwapTotal: "+c.total+" kB\n")
		write("fs/cgroup/memory.swap.max", c.most+"\n")
		s := new(config.Settings)
		s.OnSoftcap, s.Tiers[1].Soft = c.softcap, c.soft
		got := SwapUnused(s, &numa.Map{Simulated: c.simulated, Nodes: 1})
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
