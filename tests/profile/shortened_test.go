package profile

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestShortened: a block that realloc shortens in place counts with its new size.
func TestShortened(t *testing.T) {
	p, _ := run(t, "1K", testlib.CC(t, "shortened.c"))
	inuse := int64(0)
	for _, s := range p.Sample {
		inuse += s.Value[p.value(t, "inuse_space")]
	}
	if inuse < 5000000 || inuse > 6000000 {
		t.Errorf("%d bytes are in use", inuse)
	}
}
