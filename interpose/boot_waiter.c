// The thread that waits to start the Go runtime, until it starts it or the program needs to be
// alone.
#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <time.h>
#include "boot.h"
#include "exports.h"
#include "syscall.h"

// futex: the kernel's number of the thread while it waits, negative during a fork, or 0
static int waiter;

static void wake(void)
{
	ta_sys4(SYS_futex, (uintptr_t)&waiter, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0);
}

int ta_waiter_begin(void)
{
	int tid = (int)ta_sys4(SYS_gettid, 0, 0, 0, 0);
	__atomic_store_n(&waiter, tid, __ATOMIC_RELEASE);
	return tid;
}

static int become(int from, int to)
{
	return __atomic_compare_exchange_n(&waiter, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int ta_waiter_wait(int tid)
{
	enum { WAIT = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG }; // until a time, not for a while
	struct timespec until;
	ta_sys4(SYS_clock_gettime, CLOCK_MONOTONIC, (uintptr_t)&until, 0, 0);
	until.tv_nsec += 200000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	uintptr_t limit = (uintptr_t)&until;
	for (int now; (now = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE)) != 0;) {
		if (limit == 0 && become(tid, 0))
			return 1;
		if (limit == 0 && now > 0)
			continue;
		// libc interrupts it to change the user of all threads
		if (ta_sys(SYS_futex, (uintptr_t)&waiter, WAIT, (uintptr_t)now, limit, 0,
				FUTEX_BITSET_MATCH_ANY) == -ETIMEDOUT)
			limit = 0;
	}
	return 0;
}

int ta_waiter_hold(void)
{
	int tid = __atomic_load_n(&waiter, __ATOMIC_RELAXED);
	return tid > 0 && become(tid, -tid) ? tid : 0;
}

void ta_waiter_release(int tid)
{
	become(-tid, tid);
	wake();
}

void ta_waiter_dismiss(void)
{
	struct timespec step = {.tv_nsec = 20000};
	if (__atomic_load_n(&waiter, __ATOMIC_RELAXED) == 0 || !ta_thread_is_ours())
		return;
	int tid = __atomic_exchange_n(&waiter, 0, __ATOMIC_ACQ_REL);
	if (tid == 0)
		return;
	ta_go_control_stop(TA_STOP_HOST);
	wake();
	// The loop has an end because the caller may be a signal handler that the thread waits for.
	for (int i = 0; i < 1000 && ta_sys4(SYS_tgkill, ta_pid(), tid, 0, 0) == 0; i++)
		ta_sys4(SYS_nanosleep, (uintptr_t)&step, 0, 0, 0);
}
