package cuda

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestLimits: what a program sees of a limit, and what happens when it comes to it. The
// device has 1024 MiB.
func TestLimits(t *testing.T) {
	program := cc(t, "limits.c")
	unlimited := `free 1024 of 1024 MiB, device 1024
20 blocks, 0 on the host, then 0
free 824 of 1024 MiB, device 1024
free 1024 of 1024 MiB, device 1024
cu.cuMemAlloc_v2(&q, 30 * MIB) = 0
cu.cuMemFree_v2(q) = 0
20 blocks, 0 on the host, then 0
`
	limited := `free 64 of 64 MiB, device 64
6 blocks, 0 on the host, then 2
free 4 of 64 MiB, device 64
free 64 of 64 MiB, device 64
cu.cuMemAlloc_v2(&q, 30 * MIB) = 0
cu.cuMemFree_v2(q) = 0
6 blocks, 0 on the host, then 2
`
	spilled := `free 64 of 64 MiB, device 64
20 blocks, 14 on the host, then 0
free 4 of 64 MiB, device 64
free 64 of 64 MiB, device 64
cu.cuMemAlloc_v2(&q, 30 * MIB) = 0
cu.cuMemFree_v2(q) = 0
20 blocks, 14 on the host, then 0
`
	for _, c := range []struct {
		name string
		env  []string
		want string
	}{
		{"none", nil, unlimited},
		{"soft", []string{"TA_CUDA_SOFT=32M"}, unlimited},
		{"hard", []string{"TA_CUDA_HARD=64M"}, limited},
		{"proportion", []string{"TA_CUDA_PROPORTION=0.0625"}, limited},
		{"spill", []string{"TA_CUDA_HARD=64M", "TA_CUDA_ON_HARDCAP=spill"}, spilled},
		{"event", []string{"TA_CUDA_HARD=64M", "TA_CUDA_REUSE=event"}, limited},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := testlib.Run(t, command(true, c.env, program, "fill"))
			clean(t, r)
			if r.Stdout != c.want {
				t.Error(differences(c.want, r.Stdout))
			}
		})
	}
}

// TestFullDevice: the device itself has no more; cached memory is given back first.
func TestFullDevice(t *testing.T) {
	same(t, []string{"FAKE_MEMORY=67108864"}, cc(t, "limits.c"), "fill")
}

// TestForeignCounts: what the driver serves itself counts against a limit.
func TestForeignCounts(t *testing.T) {
	r := testlib.Run(t, command(true, []string{"TA_CUDA_HARD=64M"}, cc(t, "limits.c"), "foreign"))
	clean(t, r)
	want := `cu.cuMemAllocManaged(&p, 50 * MIB, 1) = 0
cu.cuMemAlloc_v2(&q, 30 * MIB) = 2
free 14 of 64 MiB, device 64
cu.cuMemFree_v2(p) = 0
cu.cuMemAlloc_v2(&q, 30 * MIB) = 0
free 34 of 64 MiB, device 64
cu.cuMemCreate(&h, 40 * MIB, &prop, 0) = 2
cu.cuMemCreate(&h, 30 * MIB, &prop, 0) = 0
free 4 of 64 MiB, device 64
cu.cuMemRelease(h) = 0
cu.cuMipmappedArrayCreate(&m, &(CUDA_ARRAY3D_DESCRIPTOR){2048, 2048, 0, 0x20, 1, 0}, 12) = 0
free 12 of 64 MiB, device 64
cu.cuMipmappedArrayDestroy(m) = 0
cu.cuMipmappedArrayCreate(&m, &layered, 9) = 0
free 12 of 64 MiB, device 64
cu.cuMipmappedArrayDestroy(m) = 0
free 34 of 64 MiB, device 64
`
	if r.Stdout != want {
		t.Error(differences(want, r.Stdout))
	}
}

// TestHints: cold memory is spilled first, hot memory never is; a rule that matches says
// more than the thread does.
func TestHints(t *testing.T) {
	program := cc(t, "limits.c")
	const call = "cu.cuMemAlloc_v2(&p, 40 * MIB) = "
	for _, c := range []struct{ rules, want string }{
		{"", call + "0\n1 on the host\n" + call + "0\n1 on the host\n" + call + "2\n"},
		{"size>=10M:warm", call + "0\n0 on the host\n" + call + "0\n1 on the host\n" + call +
			"0\n"},
		{"size>=10M:cold", call + "0\n1 on the host\n" + call + "0\n2 on the host\n" + call +
			"0\n"},
		{"size<10M:cold;lib=limits:hot", call + "0\n0 on the host\n" + call + "2\n0 on the host\n" +
			call + "2\n"},
	} {
		t.Run(c.rules, func(t *testing.T) {
			r := testlib.Run(t, command(true,
				[]string{"TA_CUDA_HARD=64M", "TA_CUDA_SOFT=32M", "TA_CUDA_ON_HARDCAP=spill",
					"TA_RULES=" + c.rules}, program, "hints"))
			clean(t, r)
			if r.Stdout != c.want {
				t.Error(differences(c.want, r.Stdout))
			}
		})
	}
}
