// The thread that waits to start the Go runtime, until it starts it or the program needs to be
// alone. It looks whether there is background work after 0.2 s, then each time after twice as long,
// up to a minute, and is woken where there is an event for the log. Only a child that is forked
// before the first time gets a thread of its own: servers fork at their start, shells always.
#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <time.h>
#include "boot.h"
#include "exports.h"
#include "syscall.h"

// The kernel's number of the thread while it waits, negative during a fork; UNBORN until the thread
// runs; or 0. Each change, and each event of the log that nobody reads, rings ta_waiter_bell.
static int waiter;

uint32_t ta_waiter_bell;

static int looked; // the thread has looked after 0.2 s

enum { UNBORN = -0x7fffffff };

static void ring(void)
{
	__atomic_add_fetch(&ta_waiter_bell, 1, __ATOMIC_RELEASE);
	ta_sys4(SYS_futex, (uintptr_t)&ta_waiter_bell, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0);
}

static int become(int from, int to)
{
	return __atomic_compare_exchange_n(&waiter, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void ta_waiter_expect(int expected)
{
	__atomic_store_n(&waiter, expected ? UNBORN : 0, __ATOMIC_RELEASE);
}

int ta_waiter_begin(void) { return become(UNBORN, (int)ta_sys4(SYS_gettid, 0, 0, 0, 0)); }

// Sleeps until the time. Returns 0 before that if the bell has rung since heard, or libc interrupts
// it to change the user of all threads.
static int sleeps(uint32_t heard, const struct timespec *until)
{
	enum { WAIT = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG }; // until a time, not for a while
	return ta_sys(SYS_futex, (uintptr_t)&ta_waiter_bell, WAIT, heard, (uintptr_t)until, 0,
			   FUTEX_BITSET_MATCH_ANY) == -ETIMEDOUT;
}

#define SECOND INT64_C(1000000000)

static void add(struct timespec *t, int64_t ns)
{
	ns += t->tv_nsec;
	t->tv_sec += ns / SECOND;
	t->tv_nsec = ns % SECOND;
}

int ta_waiter_wait(void)
{
	struct timespec until;
	ta_sys4(SYS_clock_gettime, CLOCK_MONOTONIC, (uintptr_t)&until, 0, 0);
	int64_t pause = SECOND / 5;
	add(&until, pause);
	for (int due = 0;;) {
		uint32_t heard = __atomic_load_n(&ta_waiter_bell, __ATOMIC_ACQUIRE);
		int now = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE);
		due = due || (heard != 0 && ta_go_control_due(0) != 0);
		if (now == 0)
			return 0;
		if (due && now > 0) {
			if (become(now, 0))
				return 1;
		} else if (sleeps(heard, due ? NULL : &until)) {
			due = ta_go_control_due(1) != 0;
			__atomic_store_n(&looked, 1, __ATOMIC_RELAXED);
			pause = pause < 30 * SECOND ? 2 * pause : pause;
			add(&until, pause);
		}
	}
}

static void doze(void)
{
	struct timespec step = {.tv_nsec = 20000};
	ta_sys4(SYS_nanosleep, (uintptr_t)&step, 0, 0, 0);
}

// The thread's number once it runs, which it does soon; or 0.
static int born(void)
{
	int tid = 0;
	for (int i = 0; i < 1000 && (tid = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE)) == UNBORN; i++)
		doze();
	return tid;
}

int ta_waiter_hold(void)
{
	int tid = __atomic_load_n(&looked, __ATOMIC_RELAXED) ? 0 : born();
	return tid > 0 && become(tid, -tid) ? tid : 0;
}

void ta_waiter_release(int tid)
{
	become(-tid, tid);
	ring();
}

void ta_waiter_dismiss(void)
{
	if (__atomic_load_n(&waiter, __ATOMIC_RELAXED) == 0 || !ta_thread_is_ours())
		return;
	born();
	int tid = __atomic_exchange_n(&waiter, 0, __ATOMIC_ACQ_REL);
	if (tid == 0)
		return;
	ta_go_control_stop(TA_STOP_HOST);
	ring();
	// The loop has an end because the caller may be a signal handler that the thread waits for.
	for (int i = 0; i < 1000 && ta_sys4(SYS_tgkill, ta_pid(), tid, 0, 0) == 0; i++)
		doze();
}
