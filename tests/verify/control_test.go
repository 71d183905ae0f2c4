package verify

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestControlPlaneTakesNoLock: what runs on goroutines reaches the heap by the gate only.
// A goroutine that the scheduler stops while it holds the heap's lock would stop the
// program: to end the stop, the scheduler may need a thread, and to start that thread
// the C library allocates memory, which waits for the lock.
func TestControlPlaneTakesNoLock(t *testing.T) {
	img, err := Load(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	const lock = "tieralloc/internal/raw.(*Lock).wait"
	if img.named[lock] == nil {
		t.Fatalf("no function %s: the walk would prove nothing", lock)
	}
	rules := ProjectRules()
	var ours []*Func
	for _, fn := range img.funcs {
		if pkg := packageOf(fn.Name); strings.HasPrefix(pkg, Module+"/") && !rules.Own(pkg) {
			ours = append(ours, fn)
		}
	}
	if len(ours) < 5 {
		t.Fatalf("only %d functions of the control plane", len(ours))
	}
	all := &Rules{Own: func(pkg string) bool { return strings.HasPrefix(pkg, Module+"/") }}
	w := &walker{img: img, rules: all, summaries: map[*Func]*summary{}, parent: map[*Func]*Func{}}
	w.reachAll(ours)
	if w.summaries[img.named[lock]] != nil {
		t.Errorf("goroutines take locks: %s", strings.Join(w.path(img.named[lock]), " → "))
	}
}
