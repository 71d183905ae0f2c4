package numa

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a sysfs to write into a folder: text by file name. A shape is made of
// few words, and a test then spoils what it wants spoilt.
type tree map[string]string

const nodesFolder = "devices/system/node/"

// shape describes the nodes of a tree.
type shape struct {
	node      int
	cpus      string // a list; "" for none
	mib       int
	distances string
	read      [2]int // ns and MB/s; 0: no figures
	tier      int    // 0: none
}

func treeOf(shapes ...shape) tree {
	t := tree{}
	var online, memory, cpu []string
	tiers := map[int][]string{}
	for _, s := range shapes {
		id := fmt.Sprint(s.node)
		dir := fmt.Sprintf("%snode%d/", nodesFolder, s.node)
		online = append(online, id)
		if s.mib > 0 {
			memory = append(memory, id)
		}
		if s.cpus != "" {
			cpu = append(cpu, id)
		}
		t[dir+"cpulist"] = s.cpus + "\n"
		t[dir+"distance"] = s.distances + "\n"
		t[dir+"meminfo"] = fmt.Sprintf("Node %d MemTotal:    %9d kB\nNode %d MemFree:     %9d kB\nNode %d MemUsed:     %9d kB\n",
			s.node, s.mib<<10, s.node, s.mib<<9, s.node, s.mib<<9)
		if s.read[0] > 0 {
			for _, kind := range []string{"read", "write"} {
				t[dir+"access1/initiators/"+kind+"_latency"] = fmt.Sprintln(s.read[0])
				t[dir+"access1/initiators/"+kind+"_bandwidth"] = fmt.Sprintln(s.read[1])
			}
		}
		if s.tier > 0 {
			tiers[s.tier] = append(tiers[s.tier], id)
		}
	}
	list := func(ids []string) string { return strings.Join(ids, ",") + "\n" }
	t[nodesFolder+"online"] = list(online)
	t[nodesFolder+"has_memory"] = list(memory)
	t[nodesFolder+"has_cpu"] = list(cpu)
	for tier, ids := range tiers {
		t[fmt.Sprintf("devices/virtual/memory_tiering/memory_tier%d/nodelist", tier)] = list(ids)
	}
	return t
}

// with is the tree with one file changed. Other trees keep theirs.
func (t tree) with(name, text string) tree {
	other := t.without(name)
	other[name] = text
	return other
}

// without is the tree without the files that have this in their name.
func (t tree) without(part string) tree {
	other := tree{}
	for name, text := range t {
		if !strings.Contains(name, part) {
			other[name] = text
		}
	}
	return other
}

// mount makes the tree sysfs for the rest of the test.
func (t tree) mount(tb testing.TB) {
	tb.Helper()
	// The path has to leave room for the names below it: t.TempDir can be long.
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
	old := sysfs
	sysfs = root
	tb.Cleanup(func() { sysfs = old })
}

// probed is the topology of a tree, on which this process may run and take memory
// everywhere.
func probed(tb testing.TB, tr tree) *Topology {
	tb.Helper()
	tr.mount(tb)
	t := new(Topology)
	if !Probe(t) {
		tb.Fatal("Probe found no nodes")
	}
	t.Allowed, t.Running = t.Online, t.CPUs
	return t
}

// The shapes of machines that people have.
var (
	oneNode = treeOf(shape{0, "0-7", 1024, "10", [2]int{}, 4})
	sockets = treeOf(
		shape{0, "0-3", 1024, "10 21", [2]int{90, 100000}, 4},
		shape{1, "4-7", 1024, "21 10", [2]int{90, 100000}, 4})
	withCXL = treeOf(
		shape{0, "0-3", 1024, "10 21 14", [2]int{100, 100000}, 4},
		shape{1, "4-7", 1024, "21 10 24", [2]int{100, 100000}, 4},
		shape{2, "", 4096, "14 24 10", [2]int{250, 30000}, 22})
	withHBM = treeOf(
		shape{0, "0-3", 1024, "10 13 24", [2]int{100, 100000}, 4},
		shape{1, "", 512, "13 10 30", [2]int{110, 400000}, 2},
		shape{2, "", 4096, "24 30 10", [2]int{300, 30000}, 28})
	sparse = treeOf(
		shape{0, "0-3", 1024, "10 20 40", [2]int{}, 0},
		shape{8, "4-7", 1024, "20 10 40", [2]int{}, 0},
		shape{63, "", 1024, "40 40 10", [2]int{}, 0})
	noMemory = treeOf(
		shape{0, "0-3", 1024, "10 21 21", [2]int{}, 0},
		shape{1, "4-7", 0, "21 10 21", [2]int{}, 0},
		shape{2, "", 1024, "21 21 10", [2]int{}, 0})
)
