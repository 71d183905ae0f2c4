// Keeping the Go runtime asleep.
//
// Go's constructor installs signal handlers and then starts the thread that
// initialises the runtime. Here that thread is not started, and the handlers are
// taken away again, unless the configuration asks for the control plane.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "heap.h"
#include "life.h"

// cgo's stub for an export asks this first. Data-plane calls do not wait for a
// runtime, and there are no others.
uintptr_t __wrap__cgo_wait_runtime_init_done(void) { return 0; }

struct disposition { // the kernel's struct sigaction
	uintptr_t handler, flags, restorer, mask;
};

enum { SIGNALS = 64 };
static struct disposition before[SIGNALS + 1];

// Preloaded, Go's constructor changes these alone. In a program that has run for a
// while it also sets SA_ONSTACK on each handler that it finds.
static const unsigned char early[] = {SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGURG};

static void each(void (*fn)(int))
{
	if (!ta_guest) {
		for (unsigned i = 0; i < sizeof early; i++)
			fn(early[i]);
		return;
	}
	for (int s = 1; s <= SIGNALS; s++)
		if (s != SIGKILL && s != SIGSTOP)
			fn(s);
}

static void save(int s) { syscall(SYS_rt_sigaction, s, NULL, &before[s], sizeof(uint64_t)); }

static void restore(int s) { syscall(SYS_rt_sigaction, s, &before[s], NULL, sizeof(uint64_t)); }

void ta_signals_save(void) { each(save); }

void ta_signals_restore(void) { each(restore); }

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	if (ta_wants_runtime)
		return __real_pthread_create(t, a, fn, arg);
	ta_signals_restore();
	return 0;
}
