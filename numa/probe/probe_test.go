package probe

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/sysfs"
	"tieralloc/internal/testlib"
	"tieralloc/numa"
)

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		name                 string
		tree                 testlib.Sysfs
		online, memory, cpus uint64
		tiered               uint64
		beyond, simple       bool
	}{
		{name: "one node", tree: testlib.OneNode, online: 1, memory: 1, cpus: 1, tiered: 1},
		{name: "two sockets", tree: testlib.Sockets, online: 3, memory: 3, cpus: 3, tiered: 3},
		{name: "cxl", tree: testlib.WithCXL, online: 7, memory: 7, cpus: 3, tiered: 7},
		{name: "hbm", tree: testlib.WithHBM, online: 7, memory: 7, cpus: 1, tiered: 7},
		{name: "sparse", tree: testlib.Sparse, online: 1<<63 | 0x101, memory: 1<<63 | 0x101,
			cpus: 0x101},
		{name: "a node without memory", tree: testlib.NoMemory, online: 7, memory: 5, cpus: 3},
		{name: "no memory tiering", tree: testlib.WithCXL.Without("memory_tiering"), online: 7,
			memory: 7, cpus: 3},
		{name: "no figures", tree: testlib.WithCXL.Without("access1"), online: 7, memory: 7,
			cpus: 3, tiered: 7},
		{name: "no has_cpu", tree: testlib.WithCXL.Without("has_cpu"), online: 7, memory: 7,
			cpus: 3, tiered: 7},
		{name: "no has_memory", tree: testlib.NoMemory.Without("has_memory"), online: 7, memory: 5,
			cpus: 3},
		{name: "one node by online", tree: testlib.OneNode.Without("has_memory"), online: 1,
			memory: 1, cpus: 1, tiered: 1},
		{name: "a node above 63", tree: testlib.Sockets.With(testlib.SysfsNodes+"online",
			"0-1,64\n").With(testlib.SysfsNodes+"has_memory", "0-1,64\n"),
			online: 3, memory: 3, cpus: 3, tiered: 3, beyond: true},
		{name: "one node and one above 63", tree: testlib.OneNode.With(testlib.SysfsNodes+"online",
			"0,1023\n").With(testlib.SysfsNodes+"has_memory", "0,1023\n"),
			online: 1, memory: 1, cpus: 1, tiered: 1, beyond: true},
		{name: "garbage in has_memory", tree: testlib.Sockets.With(testlib.SysfsNodes+"has_memory",
			"0-x\n"), online: 3, memory: 3, cpus: 3, tiered: 3},
		{name: "garbage in a tier",
			tree: testlib.WithCXL.With("devices/virtual/memory_tiering/memory_tier22/nodelist",
				"?\n"),
			online: 7, memory: 7, cpus: 3, tiered: 3},
		{name: "a tier with a node that is gone",
			tree: testlib.WithCXL.With("devices/virtual/memory_tiering/memory_tier22/nodelist",
				"2,5\n"),
			online: 7, memory: 7, cpus: 3, tiered: 7},
		{name: "other names beside the tiers",
			tree: testlib.WithCXL.With("devices/virtual/memory_tiering/memory_tierx/nodelist",
				"0-2\n").
				With("devices/virtual/memory_tiering/memory_tier/nodelist", "0-2\n").
				With("devices/virtual/memory_tiering/memory_tier123456/nodelist", "0-2\n").
				With("devices/virtual/memory_tiering/uevent", ""), online: 7, memory: 7, cpus: 3,
			tiered: 7},
		{name: "no sysfs", tree: testlib.Sysfs{}, online: 1, memory: 1, cpus: 1, simple: true},
		{name: "empty online", tree: testlib.Sockets.With(testlib.SysfsNodes+"online", "\n"),
			online: 1, memory: 1, cpus: 1, simple: true},
		{name: "garbage in online", tree: testlib.Sockets.With(testlib.SysfsNodes+"online",
			"0,,1\n").Without("has_memory"),
			online: 1, memory: 1, cpus: 1, simple: true},
		{name: "online backwards", tree: testlib.Sockets.With(testlib.SysfsNodes+"online", "1-0\n"),
			online: 1, memory: 1, cpus: 1, simple: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			mount(t, c.tree)
			top := new(numa.Topology)
			top.Node[5].MemTotal = 1 // nothing stays of what was there
			top.Tiered, top.Beyond = ^uint64(0), true
			ok := Topology(top)
			if ok == c.simple || top.Online != c.online || top.Memory != c.memory ||
				top.CPUs != c.cpus ||
				top.Tiered != c.tiered || top.Beyond != c.beyond || top.Node[5] != (numa.Node{}) {
				t.Errorf("Topology %v: online %#x memory %#x cpus %#x tiered %#x beyond %v node "+
					"5 %v",
					ok, top.Online, top.Memory, top.CPUs, top.Tiered, top.Beyond, top.Node[5])
			}
		})
	}
}

func TestProbeFigures(t *testing.T) {
	top := probed(t, testlib.WithHBM)
	hbm := &top.Node[1]
	if hbm.MemTotal != 512<<20 || hbm.ReadLatency != 110 || hbm.WriteLatency != 110 ||
		hbm.ReadBandwidth != 400000 || hbm.WriteBandwidth != 400000 || hbm.MemoryTier != 2 {
		t.Errorf("%+v", hbm)
	}
	if d := top.Node[2].Distance; d[0] != 24 || d[1] != 30 || d[2] != 10 || d[3] != 0 {
		t.Errorf("distances %v", d)
	}
	if top.Node[3] != (numa.Node{}) {
		t.Errorf("a node that is not there: %+v", top.Node[3])
	}
}

// TestProbeSparse: the columns of the table of distances are those nodes that are
// online.
func TestProbeSparse(t *testing.T) {
	d := probed(t, testlib.Sparse).Node[8].Distance
	if d[0] != 20 || d[8] != 10 || d[63] != 40 || d[1] != 0 || d[2] != 0 {
		t.Errorf("distances %v", d)
	}
}

func TestProbeSpoilt(t *testing.T) {
	const dir = testlib.SysfsNodes + "node0/"
	for _, c := range []struct {
		name, file, text string
		want             numa.Node
	}{
		{"nothing wrong", "cpulist", "0\n", numa.Node{MemTotal: 1 << 30, ReadLatency: 90,
			MemoryTier: 4}},
		{"words for a latency", "access1/initiators/read_latency", "fast\n",
			numa.Node{MemTotal: 1 << 30, MemoryTier: 4}},
		{"text behind a latency", "access1/initiators/read_latency", "90ns\n",
			numa.Node{MemTotal: 1 << 30, MemoryTier: 4}},
		{"a latency below zero", "access1/initiators/read_latency", "-90\n",
			numa.Node{MemTotal: 1 << 30, MemoryTier: 4}},
		{"a huge latency", "access1/initiators/read_latency", "99999999999999999999\n",
			numa.Node{MemTotal: 1 << 30, ReadLatency: 1<<32 - 1, MemoryTier: 4}},
		{"an old kernel's class", "access0/initiators/read_latency", "70\n",
			numa.Node{MemTotal: 1 << 30, ReadLatency: 90, MemoryTier: 4}},
		{"no number of memory", "meminfo", "Node 0 MemTotal: many kB\n",
			numa.Node{ReadLatency: 90, MemoryTier: 4}},
		{"another unit of memory", "meminfo", "Node 0 MemTotal: 1 MB\n",
			numa.Node{ReadLatency: 90, MemoryTier: 4}},
		{"memory somewhere below", "meminfo",
			strings.Repeat("Node 0 Other:  7 kB\n\n", 20) + "Node 0 MemTotal: 1 kB\n",
			numa.Node{MemTotal: 1024, ReadLatency: 90, MemoryTier: 4}},
		{"an empty meminfo", "meminfo", "", numa.Node{ReadLatency: 90, MemoryTier: 4}},
		{"one long line", "meminfo", strings.Repeat("x", 5000),
			numa.Node{ReadLatency: 90, MemoryTier: 4}},
		{"short distances", "distance", "10\n",
			numa.Node{MemTotal: 1 << 30, ReadLatency: 90, MemoryTier: 4}},
		{"distances that are none", "distance", "ten\n",
			numa.Node{MemTotal: 1 << 30, ReadLatency: 90, MemoryTier: 4}},
		{"a distance too large", "distance", "999 10\n",
			numa.Node{MemTotal: 1 << 30, ReadLatency: 90, MemoryTier: 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := probed(t, testlib.Sockets.With(dir+c.file, c.text)).Node[0]
			if n.MemTotal != c.want.MemTotal || n.ReadLatency != c.want.ReadLatency ||
				n.MemoryTier != c.want.MemoryTier {
				t.Errorf("%+v", n)
			}
		})
	}
}

// TestProbeClass0: kernels before 5.11 have no class 1.
func TestProbeClass0(t *testing.T) {
	tr := testlib.Sockets.Without("access1").With(
		testlib.SysfsNodes+"node1/access0/initiators/read_latency", "123\n")
	if n := probed(t, tr).Node[1]; n.ReadLatency != 123 || n.WriteLatency != 0 {
		t.Errorf("%+v", n)
	}
}

func TestProbeRunning(t *testing.T) {
	if !affinity() {
		t.Fatal("sched_getaffinity failed")
	}
	here, there := -1, -1 // a processor that we may use, and one that we may not
	for cpu := range maxProcessors {
		if mayRun[cpu/64]>>(cpu&63)&1 != 0 {
			here = cpu
		} else {
			there = cpu
		}
	}
	tr := testlib.Sockets.With(testlib.SysfsNodes+"node0/cpulist", fmt.Sprintf("%d\n", there)).
		With(testlib.SysfsNodes+"node1/cpulist", fmt.Sprintf("%d,%d-%d\n", there, here, here))
	mount(t, tr)
	top := new(numa.Topology)
	if Topology(top); top.Running != 2 {
		t.Errorf("on processor %d of node 1, not %d of node 0: %#x", here, there, top.Running)
	}
}

func TestMemFree(t *testing.T) {
	mount(t, testlib.WithCXL)
	if got := numa.MemFree(2); got != 2048<<20 {
		t.Errorf("%d bytes free", got)
	}
	for _, n := range []uintptr{3, 63, 64, 9999, ^uintptr(0)} {
		if got := numa.MemFree(n); got != 0 {
			t.Errorf("node %d, which is not there, has %d bytes free", n, got)
		}
	}
}

// TestProbeHere compares with what ordinary Go reads of the real sysfs.
func TestProbeHere(t *testing.T) {
	top := new(numa.Topology)
	ok := Topology(top)
	dirs, _ := filepath.Glob("/sys/devices/system/node/node[0-9]*")
	if !ok {
		if len(dirs) != 0 || *top != (numa.Topology{Online: 1, Memory: 1, CPUs: 1, Running: 1,
			Allowed: 1, Node: top.Node}) {
			t.Errorf("Topology found nothing where there is %q: %+v", dirs, top)
		}
		return
	}
	online := uint64(0)
	for _, dir := range dirs {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err != nil || n > 63 {
			continue
		}
		online |= 1 << n
		node := &top.Node[n]
		text, err := os.ReadFile(filepath.Join(dir, "meminfo"))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%d kB", node.MemTotal>>10); !strings.Contains(string(text), want) {
			t.Errorf("node %d has %s by Topology; meminfo:\n%s", n, want, text)
		}
		if top.Memory>>n&1 != 0 != (node.MemTotal > 0) {
			t.Errorf("node %d: memory %#x, %d bytes", n, top.Memory, node.MemTotal)
		}
		if free := numa.MemFree(uintptr(n)); free > node.MemTotal ||
			free == 0 && node.MemTotal > 0 {
			t.Errorf("node %d: %d of %d bytes free", n, free, node.MemTotal)
		}
		t.Logf("node %d: %d MiB, distances %v, tier %d, %d ns, %d MB/s", n, node.MemTotal>>20,
			node.Distance[:len(dirs)], node.MemoryTier, node.ReadLatency, node.ReadBandwidth)
	}
	if top.Online != online || top.Running == 0 || top.Running&^top.CPUs != 0 ||
		top.Usable() == 0 || top.Tiered&^online != 0 {
		t.Errorf("online %#x, not %#x; cpus %#x, running %#x, usable %#x, tiered %#x",
			top.Online, online, top.CPUs, top.Running, top.Usable(), top.Tiered)
	}
	one := bits.OnesCount64(top.Memory) == 1
	if numa.Single() != (one || top.Allowed == 1) {
		t.Errorf("Single %v, memory %#x, allowed %#x", numa.Single(), top.Memory, top.Allowed)
	}
}

// mount makes the tree sysfs for the rest of the test.
func mount(tb testing.TB, tr testlib.Sysfs) {
	tb.Helper()
	old := sysfs.Mounted
	sysfs.Mounted = tr.Write(tb)
	tb.Cleanup(func() { sysfs.Mounted = old })
}

// probed is the topology of a tree, on which this process may run and take memory
// everywhere.
func probed(tb testing.TB, tr testlib.Sysfs) *numa.Topology {
	tb.Helper()
	mount(tb, tr)
	t := new(numa.Topology)
	if !Topology(t) {
		tb.Fatal("Topology found no nodes")
	}
	t.Allowed, t.Running = t.Online, t.CPUs
	return t
}
