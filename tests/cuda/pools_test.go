package cuda

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestPools: cuMemAllocAsync and its like by the heap, in every mode of reuse.
func TestPools(t *testing.T) {
	program, storm := cc(t, "pools.c"), cc(t, "poolstorm.c")
	for mode, env := range modes {
		for _, c := range []string{"served", "crossed", "freed", "ended", "captured", "pools",
			"attributes", "access", "reset", "elsewhere", "capped"} {
			t.Run(mode+"/"+c, func(t *testing.T) {
				t.Parallel()
				env := append([]string{"TA_CUDA_ASYNC=heap"}, env...)
				if c == "capped" {
					env = append(env, "TA_CUDA_HARD=64M")
				}
				clean(t, testlib.Run(t, command(true, env, program, c)))
			})
		}
		for _, c := range []string{"threads", "storm"} {
			t.Run(mode+"/"+c, func(t *testing.T) {
				t.Parallel()
				clean(t, testlib.Run(t, command(true, append([]string{"TA_CUDA_ASYNC=heap"},
					env...), storm, c)))
			})
		}
		t.Run(mode+"/errors", func(t *testing.T) {
			t.Parallel()
			same(t, append([]string{"TA_CUDA_ASYNC=heap"}, env...), program, "errors")
		})
	}
}

// TestPoolsOfDriver: without the setting the driver's pools serve.
func TestPoolsOfDriver(t *testing.T) {
	program := cc(t, "pools.c")
	r := testlib.Run(t, command(true, nil, program, "served"))
	if r.Status == 0 {
		t.Error("the heap has served cuMemAllocAsync")
	}
	same(t, nil, program, "errors")
}
