// The stack of a sampled block (alloc/sampled.go, cudahook/sampled.go).
#include <sys/prctl.h>
#include <time.h>
#include "boot.h"
#include "boot_python.h"
#include "boot_walk.h"
#include "exports.h"
#include "libc_symbol.h"
#include "syscall.h"

// Notes the name of the calling thread as it was at most a millisecond before now: the system call
// would take a third of a sample's time.
static void name(struct ta_stack *s, uint64_t now)
{
	enum { AGE = 1000000 }; // nanoseconds
	static TLS uint64_t asked, known[2];
	if (asked == 0 || now - asked > AGE) {
		ta_sys4(SYS_prctl, PR_GET_NAME, (uintptr_t)known, 0, 0);
		asked = now;
	}
	s->Thread[0] = known[0];
	s->Thread[1] = known[1];
}

static void set_python(struct ta_stack *s, const struct ta_python *p)
{
	s->Python = p->thread;
	s->PythonMinor = p->minor;
}

// Where the profile has been written for the last time (ta_report_last), a filter of system calls
// may forbid those of a walk.
NOINLINE void ta_sample_note(ta_heap *h)
{
	if (UNLIKELY(!ta_flags.Reports)) {
		h->Thread->Sampled = 0;
		return;
	}
	struct ta_stack *s = (struct ta_stack *)ta_go_sample_begin((uintptr_t)h);
	if (s == NULL)
		return;
	uint64_t start = ta_clock(CLOCK_MONOTONIC);
	struct ta_python p = ta_python_here();
	set_python(s, &p);
	name(s, h->Thread->Now);
	ta_go_sample_end((uintptr_t)h, ta_walk(s, TA_UNWIND_FRAMES + 1));
	ta_go_sample_took((uintptr_t)h, start, ta_clock(CLOCK_MONOTONIC));
}

NOINLINE void ta_sample_device(struct ta_cuda_request *r)
{
	uintptr_t request = (uintptr_t)r;
	struct ta_python p = ta_python_here(); // before the profile is locked: it calls Python
	struct ta_stack *s = (struct ta_stack *)ta_go_cuda_sample_begin(request);
	if (s == NULL)
		return;
	set_python(s, &p);
	name(s, r->Now);
	ta_go_cuda_sample_end(request, ta_walk(s, TA_UNWIND_FRAMES + 1));
}
