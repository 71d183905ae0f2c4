package document

import (
	"reflect"
	"strings"
	"testing"

	"tieralloc/stats"
)

// TestShares: the instances of each manager are in its list, whatever bytes their names are of.
func TestShares(t *testing.T) {
	r := newReport(t)
	n := uint64(1 << 40)
	fill(reflect.ValueOf(&r.Shares).Elem(), func() uint64 { n++; return n })
	r.ShareCount = 5
	for i := range 5 {
		s := &r.Shares[i]
		s.Manager, s.Mode, s.Manual, s.Proportion = uint64(i/3), uint64(i/3), uint64(i&1),
			uint64(i)*100_000
		s.ManagerName = [48]byte{'m', byte('0' + i/3)}
		s.Name = [48]byte{'a', '"', 0xff}
		copy(s.Group[:], strings.Repeat("g", 47))
	}
	managers := decode(t, text(t, r))["managers"].([]any)
	if len(managers) != 2 {
		t.Fatalf("%d managers", len(managers))
	}
	k := 0
	for i, want := range []int{3, 2} {
		m := managers[i].(map[string]any)
		s := &r.Shares[k]
		for key, v := range map[string]uint64{"device": s.Device, "bytes_total": s.BytesTotal,
			"instance_count": s.Instances} {
			compare(t, key, reflect.ValueOf(v), m[key])
		}
		if m["name"] != string(s.ManagerName[:2]) || m["mode"] != names.mode[i] {
			t.Errorf("%v", m)
		}
		instances := m["instances"].([]any)
		if len(instances) != want {
			t.Fatalf("%d instances, expected %d", len(instances), want)
		}
		for _, got := range instances {
			wantShare(t, &r.Shares[k], got.(map[string]any), k)
			k++
		}
	}
}

func wantShare(t *testing.T, s *stats.Share, got map[string]any, k int) {
	t.Helper()
	for key, v := range map[string]uint64{"id": s.Id, "bytes_cap": s.BytesCap,
		"bytes_live": s.BytesLive, "bytes_peak": s.BytesPeak,
		"alloc_calls": s.AllocCalls, "free_calls": s.FreeCalls, "refused": s.Refused,
		"evictions": s.Evictions} {
		compare(t, key, reflect.ValueOf(v), got[key])
	}
	if got["name"] != "a\"\ufffd" || got["group"] != strings.Repeat("g", 47) ||
		got["pool"] != names.pool[k&1] {
		t.Errorf("%v", got)
	}
	if p, want := got["proportion"],
		"0."+string(rune('0'+k))+"000"; want != p.(interface{ String() string }).String() {
		t.Errorf("proportion %v, expected %s", p, want)
	}
}

// TestNoShares: a process without managers has no key for them.
func TestNoShares(t *testing.T) {
	if got, there := decode(t, text(t, newReport(t)))["managers"]; there {
		t.Errorf("managers: %v", got)
	}
}
