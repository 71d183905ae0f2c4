package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/sysfs"
)

// tree makes a sysfs of the files, and a text that tells of this process's groups.
func tree(t *testing.T, self string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, "fs/cgroup", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	Self, sysfs.Mounted = filepath.Join(dir, "self"), dir
	t.Cleanup(func() { Self, sysfs.Mounted = "", "" })
	if err := os.WriteFile(Self, []byte(self), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	const none = "9223372036854771712\n"
	deep := strings.Repeat("/"+strings.Repeat("d", 200), 5)
	for _, c := range []struct {
		name, self string
		files      map[string]string
		want       Memory
	}{
		{"no file of groups", "", nil, Memory{}},
		{"version 2", "0::/a/b\n", map[string]string{"a/b/memory.max": "1000\n",
			"a/b/memory.high":    "max\n",
			"a/b/memory.current": "700\n",
			"a/b/memory.stat":    "anon 1\nfile 500\ninactive_file 100\nactive_file 50\nslab 9\n"},
			Memory{1000, 550, false}},
		{"high is less than max", "0::/a\n", map[string]string{"a/memory.max": "1000\n",
			"a/memory.high": "800\n", "a/memory.current": "7\n"},
			Memory{800, 7, true}},
		{"no limit", "0::/a\n", map[string]string{"a/memory.max": "max\n", "a/memory.high": "max\n",
			"a/memory.current": "7\n"}, Memory{}},
		{"only one above has a limit", "0::/a/b/c\n",
			map[string]string{"a/b/c/memory.max": "max\n", "a/b/c/memory.current": "1\n",
				"a/memory.max": "5000\n", "a/memory.current": "400\n"}, Memory{5000, 400, false}},
		{"the one above has less left", "0::/a/b\n",
			map[string]string{"a/b/memory.max": "1000\n", "a/b/memory.current": "1\n",
				"a/memory.max": "5000\n", "a/memory.current": "4900\n"}, Memory{5000, 4900, false}},
		{"the root of a container", "0::/\n",
			map[string]string{"memory.max": "64\n", "memory.current": "65\n"},
			Memory{64, 65, false}},
		{"the names of the host in a container", "4:memory:/docker/x\n",
			map[string]string{"memory/memory.limit_in_bytes": "64\n",
				"memory/memory.usage_in_bytes": "60\n"}, Memory{64, 60, false}},
		{"version 1 beside version 2",
			"9:name=systemd:/s\n5:cpu,cpuacct:/z\n4:hugetlb,memory:/a\n0::/b\n", map[string]string{
				"memory/a/memory.limit_in_bytes": "4096\n",
				"memory/a/memory.usage_in_bytes": "4000\n",
				"memory/a/memory.stat": "inactive_file 1\nactive_file " +
					"2\ntotal_inactive_file 30\ntotal_active_file 40\n",
				"memory/memory.limit_in_bytes": none, "memory/memory.usage_in_bytes": "9\n",
				"b/memory.max": "1\n", "b/memory.current": "1\n"},
			Memory{4096, 3930, false}},
		{"version 2: parts of huge pages that are mapped no more", "0::/a\n",
			map[string]string{"a/memory.max": "1000\n", "a/memory.current": "900\n",
				"a/memory.stat": "anon 300\nfile 90\nshmem 60\nanon_thp 200\ninactive_anon " +
					"350\nactive_anon 50\ninactive_file 20\nactive_file 10\n"},
			Memory{1000, 900 - 30 - 40, false}},
		{"version 1: parts of huge pages that are mapped no more", "4:memory:/a\n",
			map[string]string{"memory/a/memory.limit_in_bytes": "1000\n",
				"memory/a/memory.usage_in_bytes": "900\n",
				"memory/a/memory.stat": "rss 3\nshmem 1\ninactive_anon 4\nactive_anon 2\n" +
					"total_rss 300\ntotal_shmem 60\ntotal_inactive_anon 350\n" +
					"total_active_anon 50\n"},
			Memory{1000, 900 - 40, false}},
		{"locked pages are mapped, and in neither list", "0::/a\n",
			map[string]string{"a/memory.max": "1000\n", "a/memory.current": "900\n",
				"a/memory.stat": "anon 300\nshmem 0\ninactive_anon 200\nactive_anon 50\n" +
					"unevictable 50\n"}, Memory{1000, 900, false}},
		{"a limit of nothing", "0::/a\n", map[string]string{"a/memory.max": "0\n",
			"a/memory.current": "0\n"}, Memory{1, 0, false}},
		{"a long path", "0::" + deep + "\n", map[string]string{deep[1:] + "/memory.max": "50\n",
			deep[1:] + "/memory.current": "5\n"}, Memory{50, 5, false}},
		{"a text that is none", "memory\x00:::\n:::", map[string]string{"memory.max": "x\n"},
			Memory{}},
		{"a path that does not fit", "0::/" + strings.Repeat("x", 9000),
			map[string]string{"memory.max": "64\n", "memory.current": "6\n"}, Memory{64, 6, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree(t, c.self, c.files)
			got := Memory{1, 2, true}
			Read(&got)
			if got != c.want {
				t.Errorf("%+v, not %+v", got, c.want)
			}
		})
	}
}
