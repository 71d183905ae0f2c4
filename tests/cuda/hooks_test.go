package cuda

import (
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// modes are the ways in which blocks become free again, and in which they are cut.
var modes = map[string][]string{
	"sync":  {"TA_CUDA_REUSE=sync"},
	"event": {"TA_CUDA_REUSE=event"},
	"all":   {"TA_CUDA_SUBALLOC=all"},
	"both":  {"TA_CUDA_REUSE=event", "TA_CUDA_SUBALLOC=all", "TA_CUDA_ZERO=1"},
}

// TestHooks: each function that has a version of ours gives the same results as the
// driver's own, in every mode.
func TestHooks(t *testing.T) {
	for source, cases := range map[string][]string{
		"hooks.c": {"pointers", "contextless", "uninitialised", "ranges", "info", "foreign",
			"capture", "ipc", "forked", "errors", "failures"},
		"contexts.c": {"contexts", "peers"},
	} {
		program := cc(t, source)
		for mode, env := range modes {
			for _, c := range cases {
				t.Run(mode+"/"+c, func(t *testing.T) {
					t.Parallel()
					same(t, env, program, c)
				})
			}
		}
	}
}

// TestReuse: no block is handed out while work that was submitted before its free may
// still be unfinished, whoever frees, whoever allocates.
func TestReuse(t *testing.T) {
	program := cc(t, "reuse.c")
	for _, c := range []string{"pending", "ordered", "held", "storm", "streams"} {
		t.Run("plain/"+c, func(t *testing.T) {
			clean(t,
				testlib.Run(t, command(false, nil, program, c)))
		})
		for mode, env := range modes {
			t.Run(mode+"/"+c, func(t *testing.T) {
				clean(t,
					testlib.Run(t, command(true, env, program, c)))
			})
		}
	}
}

// TestServed: a thousand pairs of allocation and free reach the driver a few times.
func TestServed(t *testing.T) {
	program := cc(t, "reuse.c")
	for mode, env := range modes {
		t.Run(mode, func(t *testing.T) {
			r := testlib.Run(t, command(true, env, program, "served"))
			clean(t, r)
			for _, field := range strings.Fields(r.Stdout) {
				if n, err := strconv.Atoi(field); err != nil || n > 50 {
					t.Errorf("calls of the driver for 1000 pairs of each size: %v",
						strings.Fields(r.Stdout))
					break
				}
			}
		})
	}
}

// TestAPI: ta_cuda_*, for programs that know the library.
func TestAPI(t *testing.T) {
	program := cc(t, "api.c")
	for _, c := range []string{"arguments", "guests", "reuse", "batch", "cache", "pools", "storm"} {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			clean(t, testlib.Run(t, command(true, nil, program, c)))
		})
	}
}
