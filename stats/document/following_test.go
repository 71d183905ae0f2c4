package document

import (
	"reflect"
	"testing"

	"tieralloc/stats"
)

// TestFollowing: what a process that follows did is under its keys, and another has no key for it.
func TestFollowing(t *testing.T) {
	r := fullReport(t)
	f := decode(t, text(t, r))["following"].(map[string]any)
	compare(t, "following", reflect.ValueOf(r.Following), f)
	for key, m := range map[string]stats.Moves{"up_room": r.Following.UpRoom,
		"up_hotter": r.Following.UpHotter, "down_colder": r.Following.DownColder,
		"down_softcap": r.Following.DownSoftcap, "refused": r.Following.Refused,
		"put_off": r.Following.PutOff, "out_cold": r.Following.OutCold,
		"out_unknown": r.Following.OutUnknown, "out_again": r.Following.OutAgain,
		"out_refused": r.Following.OutRefused} {
		compare(t, key, reflect.ValueOf(m), f[key])
	}
	for code, word := range []string{"none", "referenced_bits", "damon", "write_protection",
		"soft_dirty"} {
		r.Following.Source = uint64(code)
		if got := at(decode(t, text(t, r)), []string{"following", "source"}); got != word {
			t.Errorf("source %d: %v, not %s", code, got, word)
		}
	}
	r.Follows = 0
	if got, there := decode(t, text(t, r))["following"]; there {
		t.Errorf("following: %v", got)
	}
}
