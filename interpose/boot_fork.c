// Fork: the handlers, children that were made without them, and the identity of the process.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <sys/mman.h>
#include "boot.h"
#include "exports.h"
#include "libc_symbol.h"
#include "lock_order.h"
#include "syscall.h"

// The number of this process, recorded if ta_thread_is_ours will be called. In a child of vfork,
// which has its parent's memory, getpid differs from it.
static long recorded_pid;

// glibc's fork locks the list of stdio's files after the handlers have run. A thread that holds
// that lock, or a file that fflush(NULL) waits for, may wait for a lock of the library. So the
// handler locks the list first, as glibc does before it takes the locks of its own malloc. The lock
// is recursive. A libc without these functions does not lock the list in fork.
extern char __libc_single_threaded __attribute__((weak));

static struct { // in the order of list_names
	void (*lock)(void), (*unlock)(void), (*reset)(void);
} list;

static TLS uintptr_t fork_taken;
static TLS int fork_listed, fork_alone;

// Two threads may find them at the same time, because they store the same values.
HOT static int find_list(void)
{
	static const ta_symbol_name list_names[] HOT_DATA = {
		"_IO_list_lock", "_IO_list_unlock", "_IO_list_resetlock"};
	ta_symbols_own(&list, list_names, sizeof list_names / sizeof *list_names);
	return list.lock != NULL && list.unlock != NULL && list.reset != NULL;
}

HOT static void fork_prepare(void)
{
	fork_alone = &__libc_single_threaded != NULL && __libc_single_threaded;
	fork_listed = !fork_alone && find_list();
	if (fork_listed) {
		list.lock();
		TA_LOCK_TAKEN(TA_LOCK_STDIO, 0);
	}
	fork_taken = ta_go_fork_prepare(ta_token(), fork_alone);
}

HOT static void fork_parent(void)
{
	ta_go_fork_parent(fork_taken);
	if (fork_listed) {
		TA_LOCK_RELEASES(TA_LOCK_STDIO);
		list.unlock();
	}
}

HOT void ta_record_pid(void)
{
	if (ta_flags.Reports || ta_flags.RulesByThread || ta_flags.Runtime)
		recorded_pid = ta_pid();
}

static void child_began(void)
{
	ta_record_pid();
	if (ta_alive != NULL)
		*ta_alive = 1;
}

static uintptr_t own_heap(void) { return ta_self == &ta_heap_none ? 0 : (uintptr_t)ta_self; }

HOT static void fork_child(void)
{
	if (ta_go_fork_child(ta_token(), fork_taken, own_heap(), fork_alone) != 0)
		ta_torn = 1;
	if (fork_listed) {
		TA_LOCK_RELEASES(TA_LOCK_STDIO);
		list.reset(); // glibc does the same in a process with several threads
	}
	child_began();
}

void ta_fork_unseen(void)
{
	*ta_alive = 1;
	ta_go_fork_unprepared(ta_token(), own_heap());
	child_began();
}

// Whether the calling thread has thread-local storage made by libc. A child of clone may have none,
// or a block of zeros. libc's block begins with its own address, and repeats the address at offset
// 16 (tcbhead_t of glibc's sysdeps/x86_64/nptl/tls.h).
static int has_tls(void)
{
	uintptr_t tcb = 0;
	ta_sys4(SYS_arch_prctl, ARCH_GET_FS, (uintptr_t)&tcb, 0, 0);
	return tcb != 0 && tcb % 16 == 0 && ta_readable(tcb) && ta_readable(tcb + 16) &&
		((uintptr_t *)tcb)[0] == tcb && ((uintptr_t *)tcb)[2] == tcb;
}

int ta_thread_is_ours(void) { return ta_pid() == recorded_pid && has_tls(); }

// Registers the fork handlers at the very first call, before the constructor of any other library
// runs. So the library's prepare handler runs last, after those of others, which may allocate. The
// function is the one behind pthread_atfork.
HOT void ta_fork_watch(void)
{
	ta_own.register_atfork(fork_prepare, fork_parent, fork_child, NULL);
}

// Maps the page that the kernel clears in a forked child. It comes late, because a mapping takes a
// third of the time that boot takes in all. Two threads may come at once.
void ta_fork_mark(void)
{
	enum { PAGE = 4096 };
	if (ta_alive != NULL)
		return;
	long page = ta_sys(
		SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uintptr_t)-1, 0);
	if (page <= 0)
		return;
	volatile uint64_t *mark = (volatile uint64_t *)page, *none = NULL;
	*mark = 1;
	if (ta_sys4(SYS_madvise, (uintptr_t)page, PAGE, MADV_WIPEONFORK, 0) != 0 ||
		!__atomic_compare_exchange_n(&ta_alive, &none, mark, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		ta_sys4(SYS_munmap, (uintptr_t)page, PAGE, 0, 0);
}
