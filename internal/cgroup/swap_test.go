package cgroup

import "testing"

func TestSwapAllowed(t *testing.T) {
	const none = "9223372036854771712\n"
	for _, c := range []struct {
		name, self string
		files      map[string]string
		want       bool
	}{
		{"no file of groups", "", nil, true},
		{"no limit", "0::/a/b\n", map[string]string{"a/b/memory.swap.max": "max\n"}, true},
		{"some", "0::/a/b\n", map[string]string{"a/b/memory.swap.max": "4096\n"}, true},
		{"none", "0::/a/b\n", map[string]string{"a/b/memory.swap.max": "0\n"}, false},
		{"none above", "0::/a/b\n", map[string]string{"a/b/memory.swap.max": "max\n",
			"a/memory.swap.max": "0\n"}, false},
		{"none in a container", "0::/x\n", map[string]string{"memory.swap.max": "0\n"}, false},
		{"version 1", "4:memory:/x\n", map[string]string{
			"memory/x/memory.memsw.limit_in_bytes": none,
			"memory/x/memory.limit_in_bytes":       "64\n"}, true},
		{"version 1, none", "4:memory:/x\n", map[string]string{
			"memory/x/memory.memsw.limit_in_bytes": "64\n",
			"memory/x/memory.limit_in_bytes":       "64\n"}, false},
		{"version 1, some", "4:memory:/x\n", map[string]string{
			"memory/x/memory.memsw.limit_in_bytes": "65\n",
			"memory/x/memory.limit_in_bytes":       "64\n"}, true},
	} {
		tree(t, c.self, c.files)
		if got := SwapAllowed(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
