package testlib

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Sysfs is a copy of a sysfs of memory nodes: texts by file name. A test makes one, may damage some
// files, and writes it to a folder.
type Sysfs map[string]string

// SysfsNodes is the path of the nodes' folder in it.
const SysfsNodes = "devices/system/node/"

// SysfsNode describes a node of a tree.
type SysfsNode struct {
	Node      int
	CPUs      string // a list; "" for none
	MiB       int
	Distances string
	Read      [2]int // ns and MB/s; 0: no figures
	Tier      int    // 0: none
}

// SysfsOf returns the tree of a machine with these nodes.
func SysfsOf(nodes ...SysfsNode) Sysfs {
	t := Sysfs{}
	var online, memory, cpu []string
	tiers := map[int][]string{}
	for _, s := range nodes {
		id := fmt.Sprint(s.Node)
		dir := fmt.Sprintf("%snode%d/", SysfsNodes, s.Node)
		online = append(online, id)
		if s.MiB > 0 {
			memory = append(memory, id)
		}
		if s.CPUs != "" {
			cpu = append(cpu, id)
		}
		t[dir+"cpulist"] = s.CPUs + "\n"
		t[dir+"distance"] = s.Distances + "\n"
		t[dir+"meminfo"] = fmt.Sprintf("Node %d MemTotal:    %9d kB\nNode %d MemFree:     %9d "+
			"kB\nNode %d MemUsed:     %9d kB\n",
			s.Node, s.MiB<<10, s.Node, s.MiB<<9, s.Node, s.MiB<<9)
		if s.Read[0] > 0 {
			for _, kind := range []string{"read", "write"} {
				t[dir+"access1/initiators/"+kind+"_latency"] = fmt.Sprintln(s.Read[0])
				t[dir+"access1/initiators/"+kind+"_bandwidth"] = fmt.Sprintln(s.Read[1])
			}
		}
		if s.Tier > 0 {
			tiers[s.Tier] = append(tiers[s.Tier], id)
		}
	}
	list := func(ids []string) string { return strings.Join(ids, ",") + "\n" }
	t[SysfsNodes+"online"] = list(online)
	t[SysfsNodes+"has_memory"] = list(memory)
	t[SysfsNodes+"has_cpu"] = list(cpu)
	for tier, ids := range tiers {
		t[fmt.Sprintf("devices/virtual/memory_tiering/memory_tier%d/nodelist", tier)] = list(ids)
	}
	return t
}

// With returns a copy of the tree with one file changed.
func (t Sysfs) With(name, text string) Sysfs {
	other := t.Without(name)
	other[name] = text
	return other
}

// Without returns a copy of the tree without the files whose names contain part.
func (t Sysfs) Without(part string) Sysfs {
	other := Sysfs{}
	for name, text := range t {
		if !strings.Contains(name, part) {
			other[name] = text
		}
	}
	return other
}

// Write writes the tree into a folder, for the rest of the test, and returns its name.
func (t Sysfs) Write(tb testing.TB) (root string) {
	tb.Helper()
	// The path must leave room for the names below it; that of t.TempDir can be too long.
	root, err := os.MkdirTemp("", "sysfs")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(root) })
	for name, text := range t {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

// Common machines.
var (
	OneNode = SysfsOf(SysfsNode{0, "0-7", 1024, "10", [2]int{}, 4})
	Sockets = SysfsOf(
		SysfsNode{0, "0-3", 1024, "10 21", [2]int{90, 100000}, 4},
		SysfsNode{1, "4-7", 1024, "21 10", [2]int{90, 100000}, 4})
	WithCXL = SysfsOf(
		SysfsNode{0, "0-3", 1024, "10 21 14", [2]int{100, 100000}, 4},
		SysfsNode{1, "4-7", 1024, "21 10 24", [2]int{100, 100000}, 4},
		SysfsNode{2, "", 4096, "14 24 10", [2]int{250, 30000}, 22})
	WithHBM = SysfsOf(
		SysfsNode{0, "0-3", 1024, "10 13 24", [2]int{100, 100000}, 4},
		SysfsNode{1, "", 512, "13 10 30", [2]int{110, 400000}, 2},
		SysfsNode{2, "", 4096, "24 30 10", [2]int{300, 30000}, 28})
	Sparse = SysfsOf(
		SysfsNode{0, "0-3", 1024, "10 20 40", [2]int{}, 0},
		SysfsNode{8, "4-7", 1024, "20 10 40", [2]int{}, 0},
		SysfsNode{63, "", 1024, "40 40 10", [2]int{}, 0})
	NoMemory = SysfsOf(
		SysfsNode{0, "0-3", 1024, "10 21 21", [2]int{}, 0},
		SysfsNode{1, "4-7", 0, "21 10 21", [2]int{}, 0},
		SysfsNode{2, "", 1024, "21 21 10", [2]int{}, 0})
)
