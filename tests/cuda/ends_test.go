package cuda

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestEnds: contexts and captures come and go under threads that work.
func TestEnds(t *testing.T) {
	program := cc(t, "ends.c")
	for _, c := range []string{"destroys", "releases", "captures", "legacy", "othercontext", "copies",
		"copied", "created", "others", "child", "refusals", "attributes"} {
		for _, reuse := range []string{"sync", "event"} {
			t.Run(c+"/"+reuse, func(t *testing.T) {
				t.Parallel()
				same(t, []string{"TA_CUDA_REUSE=" + reuse}, program, c)
			})
		}
	}
}

// TestCreatedUnderCap: so with a cap that the cache has to make room under.
func TestCreatedUnderCap(t *testing.T) {
	program := cc(t, "ends.c")
	for _, reuse := range []string{"sync", "event"} {
		same(t, []string{"TA_CUDA_HARD=100M", "TA_CUDA_REUSE=" + reuse}, program, "created")
	}
}

// TestCapAcrossContexts: a cap is the device's, in whichever context, and in a child that
// is the first to use CUDA.
func TestCapAcrossContexts(t *testing.T) {
	program := cc(t, "ends.c")
	want := `free 10 of 100 MiB
cu.cuMemAlloc_v2(&p, f - 2 * MIB) = 0
cu.cuMemAlloc_v2(&p, 4 * MIB) = 2
`
	for name, end := range map[string]string{"others": "", "child": "status 0\n"} {
		r := testlib.Run(t, command(true, []string{"TA_CUDA_HARD=100M"}, program, name))
		clean(t, r)
		if r.Stdout != want+end {
			t.Errorf("%s: %s", name, differences(want+end, r.Stdout))
		}
	}
}
