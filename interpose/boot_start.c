// Boot, fork and exit.
#define _GNU_SOURCE
#include <errno.h>
#include <asm/prctl.h>
#include <elf.h>
#include <sys/mman.h>
#include "cuda_driver.h"
#include "heap.h"
#include "libc_symbol.h"
#include "boot.h"
#include "syscall.h"
#include "exports.h"

int ta_mode;
int ta_guest;
int ta_torn;
int ta_wants_runtime;
volatile uint64_t *ta_alive;

// Where ta_thread_is_ours will be asked. In a vfork child the kernel's number differs though the
// memory is the parent's.
static long recorded_pid;

static int reports; // something is written at exit

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
// twice. A libc without these functions does not wait for it.
extern char __libc_single_threaded __attribute__((weak));

static TLS uintptr_t fork_taken;
static TLS int fork_listed;

HOT static void fork_prepare(void)
{
	int alone = &__libc_single_threaded != NULL && __libc_single_threaded;
	fork_listed = !alone && ta_own.list_lock && ta_own.list_unlock && ta_own.list_resetlock;
	if (fork_listed)
		ta_own.list_lock();
	fork_taken = ta_go_fork_prepare(ta_token());
}

HOT static void fork_parent(void)
{
	ta_go_fork_parent(fork_taken);
	if (fork_listed)
		ta_own.list_unlock();
}

HOT static void record_pid(void)
{
	if (reports || ta_rules_by_thread)
		recorded_pid = ta_pid();
}

static void child_began(void)
{
	record_pid();
	ta_deepbind_forked();
	if (ta_alive != NULL)
		*ta_alive = 1;
}

static uintptr_t own_heap(void) { return ta_self == &ta_heap_none ? 0 : (uintptr_t)ta_self; }

HOT static void fork_child(void)
{
	ta_torn = ta_go_fork_child(ta_token(), fork_taken, own_heap()) != 0;
	if (fork_listed)
		ta_own.list_resetlock(); // as glibc has done, if it saw several threads, too
	child_began();
}

void ta_fork_unseen(void)
{
	*ta_alive = 1;
	ta_go_fork_unprepared(ta_token(), own_heap());
	child_began();
}

// Whether the calling thread has thread-local storage that libc made. A child of clone may have
// none at all, or a block of zeros. libc's begins with its own address, and has it once more 16
// bytes on (tcbhead_t of glibc's sysdeps/x86_64/nptl/tls.h).
static int has_tls(void)
{
	uintptr_t tcb = 0;
	ta_sys4(SYS_arch_prctl, ARCH_GET_FS, (uintptr_t)&tcb, 0, 0);
	return tcb != 0 && tcb % 16 == 0 && ta_readable(tcb) && ta_readable(tcb + 16) &&
		((uintptr_t *)tcb)[0] == tcb && ((uintptr_t *)tcb)[2] == tcb;
}

int ta_thread_is_ours(void) { return ta_pid() == recorded_pid && has_tls(); }

HOT static void report(void)
{
	if (LIKELY(!reports) || !ta_thread_is_ours())
		return;
	int saved = errno;
	ta_go_report(ta_token());
	errno = saved;
}

HOT static void report_at_exit(void *unused)
{
	(void)unused;
	report();
}

int ta_service(void) { return ta_go_service(ta_token()) != 0; }

// Registers for fork and exit. It happens at the very first call, before any other
// library's constructor: so our fork handlers run next to the fork, when the
// others' have allocated, and our exit handler, which belongs to no library that
// could be finalised, runs when all others have. The functions are those behind
// pthread_atfork and its like.
HOT static void watch(void)
{
	ta_own.register_atfork(fork_prepare, fork_parent, fork_child, NULL);
	if (!reports)
		return;
	ta_own.cxa_atexit(report_at_exit, NULL, NULL);
	ta_own.cxa_at_quick_exit(report_at_exit, NULL);
}

enum {
	BOOT_PASS = 1,
	BOOT_RUNTIME = 2,
	BOOT_DISABLED = 4,
	BOOT_LIB = 8,
	BOOT_THREAD = 16,
	BOOT_THROTTLED = 32,
	BOOT_CUDA = 64,
	BOOT_SECURE = 128,
	BOOT_RULES = 256,
	BOOT_REPORTS = 512
};

// Makes the page that the kernel clears in a forked child.
HOT static void watch_forks(void)
{
	enum { PAGE = 4096 };
	long page = ta_sys(
		SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uintptr_t)-1, 0);
	if (page > 0 && ta_sys4(SYS_madvise, (uintptr_t)page, PAGE, MADV_WIPEONFORK, 0) == 0) {
		ta_alive = (volatile uint64_t *)page;
		*ta_alive = 1;
	}
}

HOT static void boot_once(void)
{
	ta_symbols_resolve();
	ta_derived_resolve();
	ta_cxx_resolve();
	struct boot b = {
		.root = (uintptr_t)ta_root,
		.none = (uintptr_t)&ta_page_none,
		.envp = (uintptr_t)environment(),
		.secure = ta_auxv(AT_SECURE),
		.program = ta_auxv(AT_EXECFN),
		.token = ta_token(),
		.random = ta_auxv(AT_RANDOM),
	};
	if (!b.secure && has_settings())
		ta_tables();
	uintptr_t how = ta_go_boot((uintptr_t)&b);
	ta_wants_runtime = (how & BOOT_RUNTIME) != 0;
	reports = (how & BOOT_REPORTS) != 0;
	ta_rules = (how & BOOT_RULES) != 0;
	ta_rules_by_lib = (how & BOOT_LIB) != 0;
	ta_rules_by_thread = (how & BOOT_THREAD) != 0;
	record_pid();
	ta_throttled = (how & BOOT_THROTTLED) != 0;
	ta_secure = (how & BOOT_SECURE) != 0;
	ta_cuda_off = (how & BOOT_CUDA) == 0;
	ta_rules_begin();
	ta_libc_mark();
	ta_libc_resolve();
	ta_thread_init();
	if (how & BOOT_PASS) {
		ta_disabled = (how & BOOT_DISABLED) != 0;
		if (!ta_disabled)
			watch();
		__atomic_store_n(&ta_mode, TA_PASS, __ATOMIC_RELEASE);
		return;
	}
	watch();
	ta_thread_key();
	watch_forks();
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
	ta_symbols_resolve();
	report();
	ta_next.exit(status);
	__builtin_unreachable();
}

HOT EXPORT _Noreturn __attribute__((alias("_exit"))) void _Exit(int status);

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
