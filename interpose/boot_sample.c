// The stack of a sampled block (alloc/sampled.go, cudahook/sampled.go).
#include "boot.h"
#include "boot_walk.h"
#include "exports.h"

NOINLINE void ta_sample_note(ta_heap *h)
{
	struct ta_stack *s = (struct ta_stack *)ta_go_sample_begin((uintptr_t)h);
	if (s != NULL)
		ta_go_sample_end((uintptr_t)h, ta_walk(s, TA_UNWIND_FRAMES + 1));
}

NOINLINE void ta_sample_device(struct ta_cuda_request *r)
{
	uintptr_t request = (uintptr_t)r;
	struct ta_stack *s = (struct ta_stack *)ta_go_cuda_sample_begin(request);
	if (s != NULL)
		ta_go_cuda_sample_end(request, ta_walk(s, TA_UNWIND_FRAMES + 1));
}
