// How a thread gets its heap, enters the slow path, and gives the heap back when it ends.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include "heap.h"
#include "libc_symbol.h"
#include "boot.h"
#include "exports.h"

// Set when the thread has given its heap back at its end. From then on the thread borrows a heap
// for each call, because nothing would give a permanent one back.
static TLS int ending;

// How often the destructor of the library's key has run on the thread.
static TLS unsigned rounds;

// libc runs destructors in up to four rounds, one more while any of them sets its key again. Those
// of other keys allocate and free mostly in the first, and what they set again runs in the second.
enum { LAST_ROUND = 3 };

static pthread_key_t key;
static int have_key;

// The time for the slow path. The throttle needs the exact time; all else needs it to a few
// milliseconds.
static uint64_t slow_now(void)
{
	return ta_clock(LIKELY(!ta_flags.Throttled) ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC);
}

// The destructor of the library's key. It sets the key again, so that the thread keeps its heap
// until the destructors of other keys have run. Some may still allocate and free after it.
HOT static void thread_ends(void *thread)
{
	if (++rounds < LAST_ROUND && ta_own.setspecific(key, thread) == 0)
		return;
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
	static int acquired;
	if (__atomic_exchange_n(&acquired, 1, __ATOMIC_RELAXED))
		ta_fork_mark();
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

// ta_enter_heap for a free of NULL. A thread without a heap does not keep one for its first such
// calls: libc makes a few at the end of each thread, when the library's destructor will not run any
// more. A thread that makes many keeps one, because borrowing takes a lock that all threads share.
HOT ta_heap *ta_enter_for_null(void)
{
	enum { BORROWS = 16 };
	static TLS unsigned borrowed;
	if (ta_self != &ta_heap_none || borrowed == BORROWS)
		return ta_enter_heap();
	borrowed++;
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
	if (UNLIKELY(h->Thread->Sampled != 0))
		ta_sample_note(h);
	ta_heap *base = h->Thread->Base;
	h->Thread->Busy = 0;
	if (LIKELY(base == ta_self))
		return;
	if (h->Thread == ta_self->Thread)
		ta_self = base; // the hint of the thread has changed
	else
		ta_go_leave((uintptr_t)h);
}
