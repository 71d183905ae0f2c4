package numa

import (
	"encoding/binary"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/raw"
	"tieralloc/internal/sysfs"
)

// Tests here use the kernel of this machine, whatever nodes it has: they do more in
// the guest of tests/numa than on a machine with one.

// mapped is n bytes of small pages.
func mapped(tb testing.TB, n uintptr) (addr uintptr) {
	tb.Helper()
	addr = raw.Map(n)
	if addr == 0 {
		tb.Fatal("no memory")
	}
	const noHugePage = 15 // MADV_NOHUGEPAGE: then a page is there only when it was touched
	raw.Sys(syscall.SYS_MADVISE, addr, n, noHugePage, 0, 0, 0)
	tb.Cleanup(func() { raw.Unmap(addr, n) })
	return addr
}

// touch writes to every page.
func touch(addr, n uintptr) {
	for at := addr; at < addr+n; at += raw.Page {
		raw.Store(at, at)
	}
}

// intact reports whether touch's marks are there.
func intact(addr, n uintptr) bool {
	for at := addr; at < addr+n; at += raw.Page {
		if raw.Load(at) != at {
			return false
		}
	}
	return true
}

func counted(addr, n uintptr) *Residency {
	r := new(Residency)
	Count(addr, n, r)
	return r
}

// usableNodes is the real machine's.
func usableNodes() (nodes []int) {
	var p sysfs.Path
	p.Nodes("has_memory")
	set, _, _ := sysfs.NodeSet(&p)
	if allowed, ok := MemsAllowed(); ok {
		set &= allowed[0]
	}
	if set == 0 {
		set = 1 // without /sys, as in a plain chroot, node 0 alone is certain
	}
	for ; set != 0; set &= set - 1 {
		nodes = append(nodes, bits.TrailingZeros64(set))
	}
	return nodes
}

// policyAt is how numa_maps describes the policy of the mapping that has addr in it:
// the last one that begins at or below it.
func policyAt(tb testing.TB, addr uintptr) (policy string) {
	tb.Helper()
	text, err := os.ReadFile("/proc/self/numa_maps")
	if err != nil {
		tb.Skip("the kernel has no numa_maps: ", err)
	}
	for line := range strings.Lines(string(text)) {
		start, rest, _ := strings.Cut(line, " ")
		begin, err := strconv.ParseUint(start, 16, 64)
		if err != nil {
			tb.Fatalf("numa_maps: %q: %v", line, err)
		}
		if uintptr(begin) > addr {
			break
		}
		for _, mark := range []string{" anon=", " mapped=", " file=", " kernelpagesize", "\n"} {
			policy, _, _ = strings.Cut(rest, mark)
			rest = policy
		}
	}
	return policy
}

func TestBind(t *testing.T) {
	const n = 1 << 20
	for _, node := range usableNodes() {
		addr := mapped(t, n)
		place := Place{Nodes: 1 << node, Mode: PreferredMany}
		if errno := Bind(addr, n, &place, false); errno != 0 {
			t.Fatalf("node %d: errno %d", node, errno)
		}
		if r := counted(addr, n); *r != (Residency{Absent: n}) {
			t.Errorf("node %d, untouched: %+v", node, r)
		}
		touch(addr, n)
		if r := counted(addr, n); r.Node[node] != n || r.Absent+r.Failed != 0 {
			t.Errorf("node %d, touched: %+v", node, r)
		}
		if errno := Unpolicy(addr, n); errno != 0 {
			t.Errorf("Unpolicy: errno %d", errno)
		}
		if r := counted(addr, n); r.Node[node] != n {
			t.Errorf("node %d, without a policy again: %+v", node, r)
		}
	}
}

// TestBindPolicies looks at numa_maps for what the kernel made of each mode.
func TestBindPolicies(t *testing.T) {
	const n = 16 * raw.Page
	nodes := usableNodes()
	last := nodes[len(nodes)-1]
	id := strconv.Itoa(last)
	for _, c := range []struct {
		mode uint32
		want []string // one of them
	}{
		{Default, []string{"default"}},
		{Preferred, []string{"prefer:" + id}},
		{Strict, []string{"bind:" + id}},
		{Interleave, []string{"interleave:" + id}},
		{PreferredMany, []string{"prefer (many):" + id, "prefer:" + id}},
		{WeightedInterleave, []string{"weighted interleave:" + id, "interleave:" + id}},
	} {
		addr := mapped(t, n)
		place := Place{Nodes: 1 << last, Mode: c.mode}
		if errno := Bind(addr, n, &place, false); errno != 0 {
			t.Errorf("mode %d: errno %d", c.mode, errno)
			continue
		}
		touch(addr, n)
		if got := policyAt(t, addr); !slices.Contains(c.want, got) {
			t.Errorf("mode %d: numa_maps has %q, not one of %q", c.mode, got, c.want)
		}
		if errno := Bind(addr, n, &Place{}, true); errno != 0 || policyAt(t, addr) != "default" {
			t.Errorf("mode %d: back to the default: errno %d, %q", c.mode, errno, policyAt(t, addr))
		}
	}
}

// TestBindMoves goes round all nodes and back, and looks at contents and places.
func TestBindMoves(t *testing.T) {
	const n = 4 << 20
	addr := mapped(t, n)
	touch(addr, n)
	nodes := usableNodes()
	for _, node := range append(nodes, nodes[0]) {
		place := Place{Nodes: 1 << node, Mode: PreferredMany}
		if errno := Bind(addr, n, &place, true); errno != 0 {
			t.Fatalf("to node %d: errno %d", node, errno)
		}
		if r := counted(addr, n); r.Node[node] != n {
			t.Errorf("moved to node %d: %+v", node, r)
		}
		if !intact(addr, n) {
			t.Fatalf("moved to node %d: the contents changed", node)
		}
	}
}

func TestBindErrors(t *testing.T) {
	const n = 4 * raw.Page
	addr := mapped(t, n)
	good := Place{Nodes: 1 << usableNodes()[0], Mode: PreferredMany}
	before := lacking
	for _, c := range []struct {
		name  string
		addr  uintptr
		place Place
		want  syscall.Errno
	}{
		{"a node that is not there", addr, Place{Nodes: 1 << 63, Mode: PreferredMany},
			syscall.EINVAL},
		{"a node that is not there, strictly", addr, Place{Nodes: 1 << 63, Mode: Strict},
			syscall.EINVAL},
		{"a node that is not there, weighted", addr,
			Place{Nodes: 1 << 63, Mode: WeightedInterleave}, syscall.EINVAL},
		{"no such mode", addr, Place{Nodes: 1, Mode: 31}, syscall.EINVAL},
		{"not the start of a page", addr + 8, good, syscall.EINVAL},
		{"nothing mapped", 1 << 20, good, syscall.EFAULT},
	} {
		if got := Bind(c.addr, n, &c.place, false); got != uintptr(c.want) {
			t.Errorf("%s: errno %d, not %d", c.name, got, c.want)
		}
	}
	if lacking != before {
		t.Errorf("the kernel is said to lack modes %#b: EINVAL had other reasons", lacking)
	}
}

// TestBindOldKernel: once a mode is known to be lacking, the one beside it is used at
// once.
func TestBindOldKernel(t *testing.T) {
	const n = 4 * raw.Page
	before := lacking
	defer func() { lacking = before }()
	lacking = 1<<PreferredMany | 1<<WeightedInterleave
	nodes := usableNodes()
	set := uint64(0)
	for _, node := range nodes {
		set |= 1 << node
	}
	addr := mapped(t, n)
	if errno := Bind(addr, n, &Place{Nodes: set, Mode: PreferredMany}, false); errno != 0 {
		t.Errorf("errno %d", errno)
	}
	if got := policyAt(t, addr); !strings.HasPrefix(got, "prefer:") ||
		strings.ContainsAny(got, ",-") {
		t.Errorf("instead of preferring many: %q", got)
	}
	if errno := Bind(addr, n, &Place{Nodes: set, Mode: WeightedInterleave}, false); errno != 0 {
		t.Errorf("errno %d", errno)
	}
	if got := policyAt(t, addr); !strings.HasPrefix(got, "interleave:") {
		t.Errorf("instead of weights: %q", got)
	}
}

// TestBindBalanced: numa_maps tells of the flag, where the kernel has it. A kernel without it, and
// one without the mode, get the policy that they know.
func TestBindBalanced(t *testing.T) {
	const n = 16 * raw.Page
	nodes := usableNodes()
	id := strconv.Itoa(nodes[0])
	place := Place{Nodes: 1 << nodes[0], Mode: PreferredMany | Balanced}
	before := lacking
	defer func() { lacking = before }()
	for _, c := range []struct {
		lacking uint32
		want    []string // one of them
	}{
		{before, []string{"prefer (many)=balancing:" + id, "prefer (many):" + id, "prefer:" + id}},
		{Balanced, []string{"prefer (many):" + id, "prefer:" + id}},
		{Balanced | 1<<PreferredMany, []string{"prefer:" + id}},
	} {
		lacking = c.lacking
		addr := mapped(t, n)
		if errno := Bind(addr, n, &place, false); errno != 0 {
			t.Fatalf("lacking %#x: errno %d", c.lacking, errno)
		}
		touch(addr, n)
		if got := policyAt(t, addr); !slices.Contains(c.want, got) {
			t.Errorf("lacking %#x: numa_maps has %q, not one of %q", c.lacking, got, c.want)
		}
	}
}

// TestBindPromote: new pages, and those that are moved, lie on the nodes of the place, though those
// for promotion are in the policy and nearer. Without home nodes these are not in the policy.
func TestBindPromote(t *testing.T) {
	const n = 1 << 20
	nodes := usableNodes()
	if len(nodes) < 2 {
		t.Skip("one node")
	}
	all := uint64(0)
	for _, node := range nodes {
		all |= 1 << node
	}
	before := lacking
	defer func() { lacking = before }()
	for i, node := range append(nodes, nodes...) {
		if i == len(nodes) {
			lacking |= homeBit
		}
		addr := mapped(t, 2*n)
		place := Place{Nodes: 1 << node, Promote: all &^ (1 << node),
			Mode: PreferredMany | Balanced}
		Bind(addr, n, &Place{Nodes: place.Promote, Mode: Strict}, false)
		touch(addr, n)
		if errno := Bind(addr, 2*n, &place, true); errno != 0 {
			t.Fatalf("node %d: errno %d", node, errno)
		}
		touch(addr+n, n)
		if r := counted(addr, 2*n); r.Node[node] != 2*n {
			t.Errorf("node %d: %+v", node, r)
		}
		alone := strings.HasSuffix(policyAt(t, addr), ":"+strconv.Itoa(node))
		if want := lacking&(homeBit|Balanced) != 0; alone != want {
			t.Errorf("node %d, lacking %#x: numa_maps has %q", node, lacking, policyAt(t, addr))
		}
	}
}

// ownPage reports whether the page at addr is mapped there alone. Some kernels have no shared page
// of zeros, and give memory that is only read pages of its own.
func ownPage(t *testing.T, addr uintptr) bool {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var entry [8]byte
	if _, err := f.ReadAt(entry[:], int64(addr/raw.Page*8)); err != nil {
		t.Fatal(err)
	}
	const exclusive = 1 << 56
	return binary.LittleEndian.Uint64(entry[:])&exclusive != 0
}
