package cudahook

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tieralloc/internal/config"
)

// TestTraceAddresses: a trace has addresses of blocks, whatever the driver gave meanwhile.
func TestTraceAddresses(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.handles = 1 << 46 // handles are host addresses
	path := t.TempDir() + "/trace"
	var text config.Text
	if err := setText(&text, path); err != nil {
		t.Fatal(err)
	}
	SetTrace(&text)
	a := p.alloc(30 * mib)
	// a whole segment: an event
	p.must(OpStreamFree, func(r *Request) { r.Address, r.Stream = a, 7 })
	trace.on = false
	b, _ := os.ReadFile(path)
	if n := strings.Count(string(b), fmt.Sprintf("%x,", a)); n != 2 {
		t.Errorf("%#x in\n%s", a, b)
	}
}

func setText(x *config.Text, s string) error {
	for i := range len(s) {
		if !x.Byte(s[i]) {
			return fmt.Errorf("too long")
		}
	}
	return nil
}
