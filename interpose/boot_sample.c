// The stack of a sampled block (alloc/sampled.go).
#include "boot.h"
#include "boot_walk.h"
#include "exports.h"

// The numbers of tracers attached to each probe (boot_probes_amd64.S).
extern const char ta_tracers[];

NOINLINE void ta_sample_note(ta_heap *h)
{
	struct ta_stack *s = (struct ta_stack *)ta_go_sample_begin((uintptr_t)h, (uintptr_t)ta_tracers);
	if (s != NULL)
		ta_go_sample_end((uintptr_t)h, ta_walk(s, TA_UNWIND_FRAMES + 1));
}
