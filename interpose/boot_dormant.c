// Keeps the Go runtime dormant.
//
// Go's constructor would install signal handlers, and starts the thread that initialises the
// runtime. In the library that build.sh makes, the constructor runs only if the configuration asks
// for the control plane (internal/postlink). In a library that plain go build makes, the
// constructor runs always, and __wrap_pthread_create does not start the thread.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "heap.h"
#include "boot.h"
#include "libc_symbol.h"
#include "syscall.h"
#include "exports.h"

// cgo's stub for an export calls this first. All exports belong to the data plane, which does not
// wait for the runtime.
HOT uintptr_t __wrap__cgo_wait_runtime_init_done(void) { return 0; }

// cgo's stub calls this last, with the result of the first call. There is no context to release.
HOT void __wrap__cgo_release_context(uintptr_t context) { (void)context; }

// In place of the runtime's sigaction: it installs no handler, and finds the default disposition
// for every signal. The runtime's threads block signals, so it only loses asynchronous preemption.
// old is the kernel's struct sigaction.
int32_t __wrap_x_cgo_sigaction(intptr_t signal, const void *act, void *old)
{
	enum { SIZE = 32 };
	if (old != NULL)
		memset(old, 0, SIZE);
	return 0;
}

// Searched for at each use, because the waiting thread is made before the runtime's functions are
// found. In front of this library there may be one that wraps the creation of threads.
#define FIRST(f) ((__typeof__(&(f)))ta_symbol_first(#f))

static int goes_on; // futex: the host continues

static void futex(int op, int value, const struct timespec *limit)
{
	ta_sys4(SYS_futex, (uintptr_t)&goes_on, op | FUTEX_PRIVATE_FLAG, value, (uintptr_t)limit);
}

static void let_host_go_on(void)
{
	__atomic_store_n(&goes_on, 1, __ATOMIC_RELEASE);
	futex(FUTEX_WAKE, 1, NULL);
}

void ta_runtime_ready(void)
{
	static int called;
	if (__atomic_exchange_n(&called, 1, __ATOMIC_RELAXED))
		return;
	ta_reserved_trim();
	let_host_go_on();
}

// Waits for the runtime, which takes a few milliseconds, so that the host does not fork meanwhile.
// The wait ends after two seconds, because the host must run even if the runtime does not.
static void hold_host(void)
{
	struct timespec step = {.tv_nsec = 100000000};
	for (int i = 0; i < 20 && !__atomic_load_n(&goes_on, __ATOMIC_ACQUIRE); i++)
		futex(FUTEX_WAIT, 0, &step);
}

// The first thread of the runtime that cannot continue ends the control plane. The host continues
// without it.
_Noreturn void ta_runtime_fails(unsigned why)
{
	static int failed;
	if (!__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED)) {
		ta_go_control_stop(why);
		ta_runtime_ready();
	}
	for (;;) // no host's thread ever waits for one of these
		futex(FUTEX_WAIT, 1, NULL);
}

_Noreturn void ta_runtime_dies(void) { ta_runtime_fails(TA_STOP_FAILURE); }

// libc's count of threads, or NULL. The thread that brings it to 0 at its end calls exit. Threads
// of the control plane are not in it, so the process ends with the last thread of the host's.
static unsigned *counted;

static void count_out(void)
{
	if (counted != NULL && __atomic_sub_fetch(counted, 1, __ATOMIC_RELAXED) == 0)
		TA_RARE(exit)(0); // the last of the host's has just ended
}

// For a thread that is about to end, because libc will subtract it.
static void count_in(void)
{
	if (counted != NULL)
		__atomic_add_fetch(counted, 1, __ATOMIC_RELAXED);
}

// Creates a thread that blocks all signals, which the host expects on threads of its own.
static int create_blocked(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	memset(&all, 0xff, sizeof all); // libc leaves out those that it needs
	__typeof__(&pthread_sigmask) mask = FIRST(pthread_sigmask);
	mask(SIG_SETMASK, &all, &old);
	int e = FIRST(pthread_create)(t, a, fn, arg);
	mask(SIG_SETMASK, &old, NULL);
	return e;
}

static void *order(void *unused)
{
	count_out();
	ta_region_order(unused);
	count_in();
	return NULL;
}

// The driver may take long, and more stack than a thread of the Go runtime has. So an order for
// regions gets a thread.
static void order_regions(void)
{
	pthread_t t;
	pthread_attr_t detached;
	FIRST(pthread_attr_init)(&detached);
	FIRST(pthread_attr_setdetachstate)(&detached, PTHREAD_CREATE_DETACHED);
	int e = create_blocked(&t, &detached, order, NULL);
	FIRST(pthread_attr_destroy)(&detached);
	if (e != 0)
		ta_go_order_fail((uintptr_t)e);
}

int ta_service(void)
{
	int more = ta_go_service(ta_token()) != 0;
	if (ta_go_order_due())
		order_regions();
	return more;
}

uintptr_t ta_survey(uintptr_t survey) { return ta_go_service_survey(ta_token(), survey); }

uintptr_t ta_follow(uintptr_t block, uintptr_t start, uintptr_t n, uintptr_t tier)
{
	return ta_go_service_move(ta_token(), block, start, n, tier);
}

int ta_distinguish(uintptr_t block, uintptr_t start, uintptr_t n, int plain)
{
	return ta_go_service_distinguish(ta_token(), block, start, n, plain) != 0;
}

void ta_heat(uintptr_t regions, uintptr_t n, uintptr_t ns)
{
	ta_go_service_heat(ta_token(), regions, n, ns);
}

void ta_control_fails(void) { ta_go_control_stop(TA_STOP_FAILURE); }

// Creates a thread of the runtime with the stack that its system code needs. The default size can
// be too much under a limit of the address space. What libc allocates for it is the control
// plane's: a process that allocates nothing else needs no heap.
static int create(pthread_t *t, const pthread_attr_t *given, void *(*fn)(void *), void *arg)
{
	enum { STACK = 256 << 10 };
	pthread_attr_t small;
	int was = ta_in_control;
	ta_in_control = 1;
	FIRST(pthread_attr_init)(&small);
	FIRST(pthread_attr_setdetachstate)(&small, PTHREAD_CREATE_DETACHED); // as all of cgo's are
	FIRST(pthread_attr_setstacksize)(&small, STACK);
	int e = create_blocked(t, &small, fn, arg);
	FIRST(pthread_attr_destroy)(&small);
	if (e == EINVAL) // thread-local storage alone may take more
		e = create_blocked(t, given, fn, arg);
	ta_in_control = was;
	return e;
}

struct work {
	void *(*fn)(void *);
	void *arg;
};

static void *work(void *given)
{
	struct work w = *(struct work *)given;
	free(given);
	ta_in_control = 1;
	count_out();
	void *result = w.fn(w.arg);
	count_in();
	return result;
}

// Creates a thread for the Go runtime, which is the only caller. Go's constructor makes the first
// call. Handlers of the host must never run on the stack of a goroutine; internal/postlink says
// which signals the runtime unblocks. If the system refuses a thread, cgo would end the process. So
// this function reports success and ends the control plane. First it tries again for 0.2 s, as cgo
// does: the kernel refuses threads while another thread is in execve, which may fail.
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	enum { TRIES = 20 };
	static int calls;
	if (!ta_flags.Runtime)
		return 0;
	// before the new thread makes others
	int first = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) == 0;
	struct work *w = malloc(sizeof *w);
	if (w != NULL)
		*w = (struct work){fn, arg};
	int e = w != NULL ? create(t, a, work, w) : EAGAIN;
	int waits = w != NULL && (!first || ta_flags.Runtime == TA_RUNTIME_LATER); // not the host
	for (int tries = 1; e == EAGAIN && waits && tries <= TRIES; tries++) {
		int64_t ms[2] = {0, tries * 1000000};
		ta_sys4(SYS_nanosleep, (uintptr_t)ms, 0, 0, 0);
		e = create(t, a, work, w);
	}
	if (e != 0)
		free(w);
	if (e != 0 && !first)
		ta_runtime_fails(TA_STOP_THREAD);
	if (e != 0) {
		ta_go_control_stop(TA_STOP_THREAD);
		ta_runtime_ready();
	} else if (first) {
		hold_host();
	}
	return 0;
}

HOT static int limited(int resource)
{
	struct rlimit r;
	return ta_sys4(SYS_prlimit64, 0, resource, 0, (uintptr_t)&r) == 0 &&
		r.rlim_cur != RLIM_INFINITY;
}

// The runtime reserves more than a gigabyte of addresses, and ends the process when it gets no
// memory. So it is not started under a limit of the address space. Nor is it where libc would call
// the program's own malloc in its threads: that of an interpreter may be for one thread only.
HOT void ta_runtime_check(void)
{
	if (!ta_flags.Runtime)
		return;
	int limit = limited(RLIMIT_AS) || limited(RLIMIT_DATA);
	if (!limit && !ta_symbol_of_program("malloc"))
		return;
	ta_flags.Runtime = 0;
	ta_go_control_stop(limit ? TA_STOP_LIMIT : TA_STOP_MALLOC);
}

// What Go's constructor gets.
static struct {
	int argc;
	char **argv, **envp;
} arguments;

// Calls Go's constructor. Returns 0 if libc lacks a function that the runtime needs.
static int start(void)
{
	void (*constructor)(int, char **, char **) = (void *)ta_runtime_relocate();
	if (constructor != NULL)
		constructor(arguments.argc, arguments.argv, arguments.envp);
	return constructor != NULL;
}

// A thread's function: starts the runtime once there is work for it.
static void *start_later(void *unused)
{
	ta_in_control = 1;
	count_out();
	if (ta_waiter_begin() && ta_waiter_wait()) {
		ta_runtime_check(); // the host may have set a limit
		if (ta_flags.Runtime && !start())
			ta_go_control_stop(TA_STOP_FAILURE);
	}
	count_in();
	return NULL;
}

// Creates the thread that starts the runtime later.
static int begin_waiter(void)
{
	pthread_t t;
	ta_waiter_expect(1);
	int e = create(&t, NULL, start_later, NULL);
	if (e != 0)
		ta_waiter_expect(0);
	return e == 0;
}

// A child that a program of one thread forks in its first 0.2 s gets a thread that waits, too: many
// a server begins so. The thread of the parent is held meanwhile, else the child could have a part
// of a runtime.
static int held;

static void release_waiter(void)
{
	if (held != 0)
		ta_waiter_release(held);
}

static void hold_waiter(void)
{
	held = ta_waiter_hold();
	if (counted != NULL && *counted == 1)
		return;
	release_waiter();
	held = 0;
}

static void begin_again(void)
{
	if (held == 0)
		return;
	ta_go_control_again();
	if (!begin_waiter())
		ta_go_control_stop(TA_STOP_THREAD);
}

// Runs in place of Go's constructor, and calls it if the runtime is wanted.
HOT void ta_go_init(int argc, char **argv, char **envp)
{
	if (!ta_flags.Runtime)
		return;
	if (ta_flags.Filtered && ta_flags.Runtime == TA_RUNTIME_LATER) {
		ta_flags.Runtime = 0;
		ta_go_control_stop(TA_STOP_HOST);
		return;
	}
	counted = ta_symbol(ta_libc_symbols(), "__nptl_nthreads");
	arguments.argc = argc, arguments.argv = argv, arguments.envp = envp;
	int later = ta_flags.Runtime == TA_RUNTIME_LATER;
	if (!(later ? begin_waiter() : start())) {
		ta_flags.Runtime = 0;
		ta_go_control_stop(later ? TA_STOP_THREAD : TA_STOP_FAILURE);
	} else if (later) {
		ta_own.register_atfork(hold_waiter, release_waiter, begin_again, NULL);
	}
}
