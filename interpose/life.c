// Boot, fork and exit.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "cuda_driver.h"
#include "heap.h"
#include "life.h"
#include "tag.h"

int ta_mode;
int ta_guest;
int ta_wants_runtime;
volatile uint64_t *ta_alive;

static long recorded_pid;

// The raw number: in a vfork child it differs from the recorded one though the
// memory is the parent's.
static long raw_pid(void) { return syscall(SYS_getpid); }

// What the Go side is told at boot; exports.go reads it by position.
struct boot {
	uintptr_t root, none, envp, secure, program, token, random;
};

// The environment as the process got it: libc's environ, or, in the loader before
// libc has set that, the vector above the arguments on the first stack.
static char **environment(void)
{
	extern char **environ;
	extern void *__libc_stack_end;
	if (environ != NULL)
		return environ;
	uintptr_t *argc = __libc_stack_end;
	return (char **)(argc + 1 + *argc + 1);
}

// Whether a variable of the library's is set. Without one no table of words is needed.
HOT static int has_settings(void)
{
	for (char **e = environment(); *e != NULL; e++)
		if ((*e)[0] == 'T' && (*e)[1] == 'A' && (*e)[2] == '_')
			return 1;
	return 0;
}

// glibc's fork waits for the list of stdio's files when the handlers have run, and who has
// that list, or a file that fflush(NULL) waits for, may be waiting for our locks. So the list
// is taken first, as glibc does before it takes its own malloc's locks. It may be taken
// twice. No header declares this, and a libc without it does not wait for it.
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));
extern char __libc_single_threaded __attribute__((weak));

static TLS uintptr_t fork_taken;
static TLS int fork_listed;

HOT static void fork_prepare(void)
{
	int alone = &__libc_single_threaded != NULL && __libc_single_threaded;
	fork_listed = !alone && _IO_list_lock && _IO_list_unlock && _IO_list_resetlock;
	if (fork_listed)
		_IO_list_lock();
	fork_taken = tag_fork_prepare(ta_token());
}

HOT static void fork_parent(void)
{
	tag_fork_parent(fork_taken);
	if (fork_listed)
		_IO_list_unlock();
}

static void child_began(void)
{
	recorded_pid = raw_pid();
	if (ta_alive != NULL)
		*ta_alive = 1;
}

static uintptr_t own_heap(void) { return ta_self == &ta_heap_none ? 0 : (uintptr_t)ta_self; }

HOT static void fork_child(void)
{
	tag_fork_child(ta_token(), fork_taken, own_heap());
	if (fork_listed)
		_IO_list_resetlock(); // as glibc has done, if it saw several threads, too
	child_began();
}

void ta_fork_unseen(void)
{
	*ta_alive = 1;
	tag_fork_unprepared(ta_token(), own_heap());
	child_began();
}

HOT static void report(void *unused)
{
	(void)unused;
	int saved = errno;
	if (ta_mode != TA_UNBOOTED && !ta_disabled && raw_pid() == recorded_pid)
		tag_report(ta_token());
	errno = saved;
}

int ta_service(void) { return tag_service(ta_token()) != 0; }

// Registers for fork and exit. It happens at the very first call, before any other
// library's constructor: so our fork handlers run next to the fork, when the
// others' have allocated, and our exit handler, which belongs to no library that
// could be finalised, runs when all others have. The functions are those behind
// pthread_atfork and its like, which would be linked in far from all other code.
HOT static void watch(void)
{
	extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
	extern int __cxa_atexit(void (*)(void *), void *, void *), __cxa_at_quick_exit(void (*)(void *), void *);
	__register_atfork(fork_prepare, fork_parent, fork_child, NULL);
	__cxa_atexit(report, NULL, NULL);
	__cxa_at_quick_exit(report, NULL);
}

enum { BOOT_PASS = 1, BOOT_RUNTIME = 2, BOOT_DISABLED = 4, BOOT_LIB = 8, BOOT_THREAD = 16, BOOT_THROTTLED = 32, BOOT_CUDA = 64, BOOT_SECURE = 128, BOOT_RULES = 256 };

HOT static void boot_once(void)
{
	struct boot b = {
		.root = (uintptr_t)ta_root,
		.none = (uintptr_t)&ta_page_none,
		.envp = (uintptr_t)environment(),
		.secure = getauxval(AT_SECURE),
		.program = getauxval(AT_EXECFN),
		.token = ta_token(),
		.random = getauxval(AT_RANDOM),
	};
	if (has_settings())
		ta_tables();
	recorded_pid = raw_pid();
	uintptr_t how = tag_boot((uintptr_t)&b);
	ta_wants_runtime = (how & BOOT_RUNTIME) != 0;
	ta_rules = (how & BOOT_RULES) != 0;
	ta_rules_by_lib = (how & BOOT_LIB) != 0;
	ta_rules_by_thread = (how & BOOT_THREAD) != 0;
	ta_throttled = (how & BOOT_THROTTLED) != 0;
	ta_secure = (how & BOOT_SECURE) != 0;
	ta_cuda_off = (how & BOOT_CUDA) == 0;
	ta_rules_begin();
	ta_libc_mark();
	ta_thread_init();
	if (how & BOOT_PASS) {
		ta_libc_resolve();
		ta_disabled = (how & BOOT_DISABLED) != 0;
		if (!ta_disabled)
			watch();
		__atomic_store_n(&ta_mode, TA_PASS, __ATOMIC_RELEASE);
		return;
	}
	watch();
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0) {
		ta_alive = page;
		*ta_alive = 1;
	}
	__atomic_store_n(&ta_mode, TA_ACTIVE, __ATOMIC_RELEASE);
}

// The first call boots. In a preloaded process that is the loader's own, long
// before there is a second thread; in one that loaded us by dlopen it is our
// constructor. So there is nobody to race with.
HOT void ta_boot(void)
{
	static int begun;
	if (begun)
		return;
	begun = 1;
	int saved = errno;
	boot_once();
	errno = saved;
}

HOT EXPORT _Noreturn void _exit(int status)
{
	report(NULL);
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT _Noreturn __attribute__((alias("_exit"))) void _Exit(int status);

// Runs before Go's constructor.
__attribute__((constructor(101))) static void begin(void)
{
	if (ta_mode == TA_UNBOOTED)
		ta_guest = ta_malloc_is_foreign();
	ta_boot();
	ta_runtime_check();
	if (ta_wants_runtime || !ta_go_deferred())
		ta_signals_save();
}
