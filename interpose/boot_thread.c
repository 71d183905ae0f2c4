// The thread's side of the heap: first entry, end of a thread, and entry to the
// slow path.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include "heap.h"
#include "libc_symbol.h"
#include "boot.h"
#include "exports.h"

// Set when the thread's destructors have begun to run: from then on it only
// borrows a heap for each call, since nobody would give one back.
static TLS int ending;

static pthread_key_t key;
static int have_key;

// The time for the slow path. The throttle needs it exact, all else to a few milliseconds.
static uint64_t slow_now(void)
{
	return ta_clock(LIKELY(!ta_flags.Throttled) ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC);
}

// The destructor of our key. Other keys' destructors and C++ thread_local ones may
// still allocate and free after it.
HOT static void thread_ends(void *thread)
{
	ending = 1;
	ta_heap *h = ta_self;
	if (h->Thread != (ta_thread *)thread)
		return;
	ta_self = &ta_heap_none;
	h->Thread->Now = slow_now();
	ta_go_abandon((uintptr_t)h);
}

HOT void ta_thread_init(void) { ta_heap_none.Thread->Base = &ta_heap_none; }

// Makes the key whose destructor announces the end of a thread. Key 0 is left to the program: a
// program that uses a key that it never made, a static variable, must find no value.
HOT void ta_thread_key(void)
{
	have_key = ta_own.key_create(&key, thread_ends) == 0;
	if (have_key && key == 0) {
		have_key = ta_own.key_create(&key, thread_ends) == 0;
		ta_own.key_delete(0);
	}
}

// Acquires a heap: permanently, unless the thread is exiting or cannot announce its end. Such a
// thread gets it for one call.
HOT static ta_heap *acquire(void)
{
	ta_heap *h = (ta_heap *)ta_go_acquire(ta_token());
	if (h == NULL || ta_self != &ta_heap_none || ending || ta_mode != TA_ACTIVE)
		return h;
	ta_self = h;
	if (have_key && ta_own.setspecific(key, h->Thread) != 0)
		ta_self = &ta_heap_none;
	return h;
}

// The heap to work on, marked busy, or NULL when there is no memory for one. A
// signal handler that interrupts its own thread's slow path gets another heap.
HOT ta_heap *ta_enter_heap(void)
{
	if (UNLIKELY(ta_mode == TA_UNBOOTED))
		ta_boot();
	if (UNLIKELY(ta_forked_unseen()))
		ta_fork_unseen();
	ta_heap *h = ta_self;
	if (UNLIKELY(h == &ta_heap_none || h->Thread->Busy)) {
		h = acquire();
		if (h == NULL)
			return NULL;
	}
	h->Thread->Busy = 1;
	h->Thread->Now = slow_now();
	return h;
}

// ta_enter_heap for one call: a thread that has no heap does not keep this one. At the end of a
// thread libc calls free(NULL) when our destructor will not run any more.
HOT ta_heap *ta_borrow_heap(void)
{
	int was = ending;
	ending = 1;
	ta_heap *h = ta_enter_heap();
	ending = was;
	return h;
}

// ta_enter_heap, or NULL when all is passed on to libc.
HOT ta_heap *ta_enter(void)
{
	if (UNLIKELY(ta_mode == TA_UNBOOTED))
		ta_boot();
	return UNLIKELY(ta_mode == TA_PASS) ? NULL : ta_enter_heap();
}

HOT void ta_leave(ta_heap *h)
{
	ta_heap *base = h->Thread->Base;
	h->Thread->Busy = 0;
	if (LIKELY(base == ta_self))
		return;
	if (h->Thread == ta_self->Thread)
		ta_self = base; // another hint holds for the thread now
	else
		ta_go_leave((uintptr_t)h);
}
