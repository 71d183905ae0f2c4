package manager

import (
	"math/rand"
	"testing"
)

// TestAccounts holds the accounts to a plain model through random calls.
func TestAccounts(t *testing.T) {
	const total = 1 << 20
	r := newRig(t, total)
	r.do(OpMode, 0, func(c *Call) { c.On = 1 })
	random := rand.New(rand.NewSource(1))
	type piece struct{ id, bytes uint64 }
	pieces := map[uint64]piece{}
	groups := map[uint64]string{}
	next := uint64(1)
	for range 20000 {
		id := uint64(random.Intn(12)) + 1
		group, known := groups[id]
		sum := func(group string) (bytes, limit uint64) {
			for _, p := range pieces {
				if groups[p.id] == group {
					bytes += p.bytes
				}
			}
			for id, g := range groups {
				if g == group {
					limit += r.get(id).Cap
				}
			}
			return bytes, limit
		}
		switch op := random.Intn(10); {
		case op == 0 && !known:
			group = string(rune('a' + random.Intn(3)))
			if r.register(id, group, -1) == 0 {
				groups[id] = group
			}
		case op == 1 && known:
			group = string(rune('a' + random.Intn(3)))
			r.do(OpGroup, id, func(c *Call) { c.Group = r.text(group) })
			groups[id] = group
		case op == 2 && known:
			has := false
			for _, p := range pieces {
				has = has || p.id == id
			}
			if why := r.do(OpUnregister, id, nil); has != (why == busy) || !has && why != 0 {
				t.Fatalf("unregister: %d, with blocks: %v", why, has)
			} else if !has {
				delete(groups, id)
			}
		case op < 7 && known:
			bytes := uint64(random.Intn(total/16)) + 1
			have, limit := sum(group)
			address := next << 8
			next++
			why := r.add(id, address, bytes, 0)
			if fits := have+bytes <= limit; fits != (why == 0) {
				t.Fatalf("%d bytes beside %d of %d: %d", bytes, have, limit, why)
			}
			if why == 0 {
				pieces[address] = piece{id, bytes}
			}
		default:
			for address, p := range pieces {
				c := r.call(OpRemove, 0)
				c.Address = address
				if why := Serve(c); why != 0 || c.Bytes != p.bytes {
					t.Fatalf("remove: %d, %d bytes", why, c.Bytes)
				}
				if why := Serve(c); why != invalid {
					t.Fatalf("removed twice: %d", why)
				}
				delete(pieces, address)
				break
			}
		}
		if known {
			live := uint64(0)
			for _, p := range pieces {
				if p.id == id {
					live += p.bytes
				}
			}
			if _, still := groups[id]; still && r.get(id).BytesLive != live {
				t.Fatalf("instance %d has %d, not %d", id, r.get(id).BytesLive, live)
			}
		}
	}
}
