package manager

import (
	"math"
	"reflect"
	"testing"

	"tieralloc/internal/raw"
)

// rig is a manager of its own, asked as C asks.
type rig struct {
	t    *testing.T
	m    uint64
	gone bool // the test has destroyed it
	// what C keeps alive: memory that calls refer to
	kept []any
}

func newRig(t *testing.T, total uint64) *rig {
	t.Helper()
	r := &rig{t: t}
	c := r.call(OpCreate, 0)
	c.Bytes, c.Device = total, 3
	if why := Serve(c); why != 0 {
		t.Fatalf("create: %d", why)
	}
	r.m = c.Manager
	t.Cleanup(func() {
		if r.gone {
			return
		}
		for _, i := range r.list() {
			for r.do(OpFirst, i, func(c *Call) { c.After = 1 << 63 }) == 0 {
				r.remove(i)
			}
		}
		if why := r.do(OpDestroy, 0, nil); why != 0 {
			t.Errorf("destroy: %d", why)
		}
	})
	return r
}

func (r *rig) call(op Op, instance uint64) *Call {
	return &Call{Op: op, Token: 8, Manager: r.m, Instance: instance}
}

func (r *rig) do(op Op, instance uint64, set func(c *Call)) uint64 {
	c := r.call(op, instance)
	if set != nil {
		set(c)
	}
	return Serve(c)
}

func (r *rig) text(s string) uint64 {
	b := append([]byte(s), 0)
	return r.address(&b[0])
}

// address is that of what p points to, which stays where it is.
func (r *rig) address(p any) uint64 {
	r.kept = append(r.kept, p)
	return uint64(reflect.ValueOf(p).Pointer())
}

func (r *rig) list() (ids []uint64) {
	for i := (*manager)(raw.Ptr(uintptr(r.m))).first; i != nil; i = i.next {
		ids = append(ids, i.id)
	}
	return ids
}

func (r *rig) register(id uint64, group string, proportion float64) uint64 {
	return r.do(OpRegister, id, func(c *Call) {
		c.Group, c.Proportion = r.text(group), math.Float64bits(proportion)
	})
}

func (r *rig) get(id uint64) Info {
	r.t.Helper()
	info := new(Info)
	why := r.do(OpGet, id, func(c *Call) { c.Out = r.address(info) })
	if why != 0 {
		r.t.Fatalf("get %d: %d", id, why)
	}
	return *info
}

// want holds the pools' sums, and each instance's proportion and cap, to a plain account of them.
func (r *rig) want(total uint64, proportions map[uint64]float64) {
	r.t.Helper()
	for id, p := range proportions {
		info := r.get(id)
		if got := math.Float64frombits(info.Proportion); math.Abs(got-p) > 1e-12 ||
			info.Cap != uint64(got*float64(total)) {
			r.t.Errorf("instance %d: proportion %v, cap %d of %d; expected %v", id, got, info.Cap,
				total, p)
		}
	}
	if n := len(r.list()); n != len(proportions) {
		r.t.Errorf("%d instances, expected %d", n, len(proportions))
	}
}

// add has an instance get a block at an address, or returns why not.
func (r *rig) add(id, address, bytes, stream uint64) uint64 {
	why := r.do(OpCharge, id, func(c *Call) { c.Bytes = bytes })
	if why != 0 {
		return why
	}
	why = r.do(OpAdd, id, func(c *Call) { c.Bytes, c.Address, c.Stream = bytes, address, stream })
	if why != 0 {
		r.t.Fatalf("add: %d", why)
	}
	return 0
}

// remove takes out a block of the instance.
func (r *rig) remove(id uint64) {
	c := r.call(OpFirst, id)
	c.After = 1 << 63
	if why := Serve(c); why != 0 {
		r.t.Fatalf("no block of %d: %d", id, why)
	}
	if why := r.do(OpRemove, 0, func(d *Call) { d.Address = c.Address }); why != 0 {
		r.t.Fatalf("remove: %d", why)
	}
}

func TestPools(t *testing.T) {
	const total = 1000
	r := newRig(t, total)
	step := func(what string, got, want uint64, proportions map[uint64]float64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, expected %d", what, got, want)
		}
		r.want(total, proportions)
	}
	step("first", r.register(1, "default", -1), 0, map[uint64]float64{1: 1})
	step("second", r.register(2, "default", -1), 0, map[uint64]float64{1: 0.5, 2: 0.5})
	step("again", r.register(2, "default", 0.1), known, map[uint64]float64{1: 0.5, 2: 0.5})
	step("manual", r.register(3, "g", 0.5), 0, map[uint64]float64{1: 0.25, 2: 0.25, 3: 0.5})
	step("much", r.register(4, "g", 0.4), 0, map[uint64]float64{1: 0.05, 2: 0.05, 3: 0.5, 4: 0.4})
	step("too much", r.register(5, "g", 0.11), overFull,
		map[uint64]float64{1: 0.05, 2: 0.05, 3: 0.5, 4: 0.4})
	step("nothing left", r.register(5, "g", 0.06), noSpace,
		map[uint64]float64{1: 0.05, 2: 0.05, 3: 0.5, 4: 0.4})
	step("no number", r.register(5, "g", math.NaN()), invalid,
		map[uint64]float64{1: 0.05, 2: 0.05, 3: 0.5, 4: 0.4})
	step("above 1", r.register(5, "g", 1.5), invalid,
		map[uint64]float64{1: 0.05, 2: 0.05, 3: 0.5, 4: 0.4})
	step("to auto", r.do(OpAuto, 3, nil), 0, map[uint64]float64{1: 0.2, 2: 0.2, 3: 0.2, 4: 0.4})
	manual := func(id uint64, p float64) uint64 {
		return r.do(OpManual, id, func(c *Call) { c.Proportion = math.Float64bits(p) })
	}
	step("to manual", manual(3, 0.3), 0, map[uint64]float64{1: 0.15, 2: 0.15, 3: 0.3, 4: 0.4})
	step("changed", manual(3, 0.2), 0, map[uint64]float64{1: 0.2, 2: 0.2, 3: 0.2, 4: 0.4})
	step("too much again", manual(3, 0.7), overFull,
		map[uint64]float64{1: 0.2, 2: 0.2, 3: 0.2, 4: 0.4})
	step("negative", manual(3, -0.5), invalid, map[uint64]float64{1: 0.2, 2: 0.2, 3: 0.2, 4: 0.4})
	step("one leaves", r.do(OpUnregister, 1, nil), 0, map[uint64]float64{2: 0.4, 3: 0.2, 4: 0.4})
	step("the other leaves", r.do(OpUnregister, 2, nil), 0, map[uint64]float64{3: 0.2, 4: 0.4})
	step("all is manual", manual(3, 0.6), Warned, map[uint64]float64{3: 0.6, 4: 0.4})
	step("no room for automatic", r.register(6, "", -1), noSpace,
		map[uint64]float64{3: 0.6, 4: 0.4})
	step("unknown", r.do(OpAuto, 77, nil), notThere, map[uint64]float64{3: 0.6, 4: 0.4})
	c := r.call(OpPools, 0)
	if Serve(c) != 0 || math.Float64frombits(c.Manual) != 1 || c.Automatic != 0 {
		t.Errorf("pools: %v, %v", math.Float64frombits(c.Manual), math.Float64frombits(c.Automatic))
	}
}

func TestNames(t *testing.T) {
	r := newRig(t, 100)
	const long = "0123456789012345678901234567890123456789012345678"
	for n := LabelSize - 2; n <= LabelSize+1; n++ {
		why := r.do(OpRegister, uint64(n), func(c *Call) {
			c.Name, c.Group, c.Proportion = r.text(long[:n]), r.text("g"), math.Float64bits(-1)
		})
		if fits := n < LabelSize; fits != (why == 0) || !fits && why != invalid {
			t.Errorf("a name of %d bytes: %d", n, why)
		}
	}
	if why := r.do(OpGroup, LabelSize-1, func(c *Call) { c.Group = r.text(long) }); why != invalid {
		t.Errorf("a long group: %d", why)
	}
	if info := r.get(LabelSize - 1); string(info.Name[:LabelSize-1]) != long[:LabelSize-1] ||
		string(info.Group[:2]) != "g\x00" {
		t.Errorf("%q, %q", info.Name, info.Group)
	}
}

// TestBudget: in active mode a group has the sum of its members' caps, and no more.
func TestBudget(t *testing.T) {
	r := newRig(t, 1000)
	for id, p := range map[uint64]float64{1: 0.1, 2: 0.2, 3: 0.3} {
		group := "a"
		if id == 3 {
			group = "b"
		}
		if why := r.register(id, group, p); why != 0 {
			t.Fatal(why)
		}
	}
	available := func(group string, free, want, answer uint64) {
		t.Helper()
		c := r.call(OpAvailable, 0)
		c.Group, c.Free = r.text(group), free
		if why := Serve(c); why != answer || c.Available != want {
			t.Errorf("available of %s: %d, answer %d; expected %d, %d", group, c.Available, why,
				want, answer)
		}
	}
	available("a", 5000, 5000, 0)
	if why := r.add(1, 0x1000, 5000, 0); why != 0 {
		t.Errorf("passive: %d", why)
	}
	r.remove(1)
	r.do(OpMode, 0, func(c *Call) { c.On = 1 })
	available("a", 5000, 300, 0)
	available("a", 20, 20, 0)
	available("c", 20, 0, 0)
	if why := r.add(1, 0x1000, 250, 0); why != 0 {
		t.Errorf("a member may have what others do not use: %d", why)
	}
	available("a", 5000, 50, 0)
	if why := r.add(2, 0x2000, 51, 0); why != noMemory {
		t.Errorf("over the budget: %d", why)
	}
	if why := r.add(2, 0x2000, 36, 0); why != 0 {
		t.Errorf("within the budget: %d", why)
	}
	available("a", 5000, 14, Warned)
	available("b", 5000, 300, 0)
	if why := r.do(OpAccount, 2, func(c *Call) { c.Bytes = 500 }); why != 0 {
		t.Errorf("from other sources: %d", why)
	}
	available("a", 5000, 0, Warned)
	if why := r.do(OpAccount, 2, func(c *Call) { c.Bytes = uint64(1<<64 - 501) }); why != overFull {
		t.Errorf("more than there was: %d", why)
	}
	r.do(OpAccount, 2, func(c *Call) { c.Bytes = uint64(1<<64 - 500) })
	available("a", 5000, 14, Warned)
	if why := r.do(OpUnregister, 2, nil); why != busy {
		t.Errorf("unregistered with a block: %d", why)
	}
	if why := r.do(OpDestroy, 0, nil); why != busy {
		t.Errorf("destroyed with a block: %d", why)
	}
	if info := r.get(1); info.BytesLive != 250 || info.BytesPeak != 5000 || info.Allocs != 2 ||
		info.Frees != 1 {
		t.Errorf("%+v", info)
	}
}

// TestEvictionCandidate: the one that was not used for longest comes first, then the next one.
func TestEvictionCandidate(t *testing.T) {
	r := newRig(t, 1000)
	for id := uint64(1); id <= 4; id++ {
		group := "a"
		if id == 4 {
			group = "b"
		}
		r.register(id, group, -1)
		r.add(id, id<<12, 10*id, id*100)
	}
	r.do(OpUse, 1, func(c *Call) { c.Stream = 111 })
	order := func(to, everywhere uint64) (ids []uint64) {
		c := r.call(OpCandidate, to)
		for c.Everywhere = everywhere; Serve(c) == 0; {
			ids = append(ids, c.Found)
			if c.FoundBytes != 10*c.Found || c.Found == 1 && c.Stream != 111 ||
				c.Found != 1 && c.Stream != 100*c.Found {
				t.Errorf("%+v", c)
			}
		}
		return ids
	}
	same := func(got []uint64, want ...uint64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%v, expected %v", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%v, expected %v", got, want)
			}
		}
	}
	same(order(3, 0), 2, 1)
	same(order(3, 1), 2, 4, 1)
	same(order(4, 0))
	r.remove(2)
	same(order(3, 1), 4, 1)
	r.do(OpStreamEnd, 0, func(c *Call) { c.Stream = 400 })
	c := r.call(OpCandidate, 3)
	c.Everywhere = 1
	if Serve(c) != 0 || c.Found != 4 || c.Stream != StreamGone {
		t.Errorf("%+v", c)
	}
}

// TestGone: a destroyed manager answers nothing, and its place is used again.
func TestGone(t *testing.T) {
	r := newRig(t, 10)
	gone := newRig(t, 10)
	r.register(1, "", -1)
	if why := gone.do(OpDestroy, 0, nil); why != 0 {
		t.Fatal(why)
	}
	if why := gone.do(OpMode, 0, nil); why != invalid {
		t.Errorf("a destroyed manager: %d", why)
	}
	if why := (&rig{}).do(OpMode, 0, nil); why != invalid {
		t.Errorf("no manager: %d", why)
	}
	gone.gone = true
	again := newRig(t, 20)
	if again.m != gone.m {
		t.Errorf("%#x and not %#x", again.m, gone.m)
	}
	if ids := again.list(); len(ids) != 0 {
		t.Errorf("it begins with %v", ids)
	}
}
