// How a thread gets its heap, enters the slow path, and gives the heap back when it ends.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include "heap.h"
#include "libc_symbol.h"
#include "boot.h"
#include "exports.h"

// Set when the destructors of the thread have begun to run. From then on the thread borrows a heap
// for each call, because nothing would give a permanent one back.
static TLS int ending;

static pthread_key_t key;
static int have_key;

// The time for the slow path. The throttle needs the exact time; all else needs it to a few
// milliseconds.
static uint64_t slow_now(void)
{
	return ta_clock(LIKELY(!ta_flags.Throttled) ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC);
}

// The destructor of the library's key. Destructors of other keys and of C++ thread_local objects
// may still allocate and free after it.
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

// Creates the key whose destructor announces the end of a thread. It leaves key 0 to the program: a
// program that uses a static key that it never created must find no value there.
HOT void ta_thread_key(void)
{
	have_key = ta_own.key_create(&key, thread_ends) == 0;
	if (have_key && key == 0) {
		have_key = ta_own.key_create(&key, thread_ends) == 0;
		ta_own.key_delete(0);
	}
}

// Acquires a heap: permanently, unless the thread is exiting or cannot announce its end. Such a
// thread gets a heap for one call.
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

// Returns the heap to work on, marked busy, or NULL if there is no memory for one. A signal handler
// that interrupts the slow path of its own thread gets another heap.
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

// ta_enter_heap for one call: a thread without a heap does not keep this one. libc calls free(NULL)
// at the end of a thread, when the library's destructor will not run any more.
HOT ta_heap *ta_borrow_heap(void)
{
	int was = ending;
	ending = 1;
	ta_heap *h = ta_enter_heap();
	ending = was;
	return h;
}

// ta_enter_heap, or NULL if the library passes all calls on to libc.
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
		ta_self = base; // the hint of the thread has changed
	else
		ta_go_leave((uintptr_t)h);
}
