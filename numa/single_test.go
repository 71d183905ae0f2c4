package numa

import (
	"testing"

	"tieralloc/internal/sysfs"
	"tieralloc/internal/testlib"
)

// TestSingle: by sysfs alone.
func TestSingle(t *testing.T) {
	const online, memory = testlib.SysfsNodes + "online", testlib.SysfsNodes + "has_memory"
	for _, c := range []struct {
		name string
		tree testlib.Sysfs
		want bool
	}{
		{"one node", testlib.OneNode, true},
		{"one node by online", testlib.OneNode.Without("has_memory"), true},
		{"no sysfs", testlib.Sysfs{}, true},
		{"garbage in online", testlib.Sockets.With(online, "0,,1\n").Without("has_memory"), true},
		{"two sockets", testlib.Sockets, false},
		{"sparse", testlib.Sparse, false},
		{"a node without memory", testlib.NoMemory, false},
		{"one node and one above 63", testlib.OneNode.With(online, "0,1023\n").With(memory,
			"0,1023\n"), false},
		{"garbage in has_memory", testlib.Sockets.With(memory, "0-x\n"), false},
	} {
		old := sysfs.Mounted
		sysfs.Mounted = c.tree.Write(t)
		if got := single(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		sysfs.Mounted = old
	}
}

func TestOnlyFirst(t *testing.T) {
	for _, c := range []struct {
		set  AllNodes
		want bool
	}{
		{AllNodes{1}, true}, {AllNodes{}, false}, {AllNodes{2}, false}, {AllNodes{3}, false},
		{AllNodes{1, 1}, false}, {AllNodes{1, 15: 1 << 63}, false},
	} {
		if got := onlyFirst(&c.set); got != c.want {
			t.Errorf("%x: %v", c.set, got)
		}
	}
}
