// The thread that waits to start the Go runtime, until it starts it or the program needs to be
// alone.
#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <time.h>
#include "boot.h"
#include "exports.h"
#include "syscall.h"

static int waiter; // futex: the kernel's number of the thread while it waits, or 0

static long futex(int op, int value, const struct timespec *limit)
{
	return ta_sys4(SYS_futex, (uintptr_t)&waiter, op | FUTEX_PRIVATE_FLAG, value, (uintptr_t)limit);
}

int ta_waiter_begin(void)
{
	int tid = (int)ta_sys4(SYS_gettid, 0, 0, 0, 0);
	__atomic_store_n(&waiter, tid, __ATOMIC_RELEASE);
	return tid;
}

int ta_waiter_wait(int tid)
{
	struct timespec limit = {.tv_nsec = 200000000};
	while (futex(FUTEX_WAIT, tid, &limit) == -EINTR) // by libc, to change the user of all threads
		;
	return __atomic_exchange_n(&waiter, 0, __ATOMIC_ACQ_REL) != 0;
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
	futex(FUTEX_WAKE, 1, NULL);
	// The loop has an end because the caller may be a signal handler that the thread waits for.
	for (int i = 0; i < 1000 && ta_sys4(SYS_tgkill, ta_pid(), tid, 0, 0) == 0; i++)
		ta_sys4(SYS_nanosleep, (uintptr_t)&step, 0, 0, 0);
}
