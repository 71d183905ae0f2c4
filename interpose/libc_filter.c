// Notices system calls after which the library must do less.
//
// A filter of system calls (seccomp) may end the process for a call that it does not know, so from
// then on the heap reads no files (alloc/limit.go), and forks that no handler sees have their mark
// (boot_fork.c), and what is written at exit is written when the program sets its filter. A filter
// that the process began with is no danger: it knows the calls that start a program.
//
// Other threads make setns and, with some flags, unshare fail. A program that keeps its
// capabilities when it changes its user sets them for its thread alone, so that libc, which changes
// the user of all threads, aborts.
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include "libc_symbol.h"
#include "boot.h"
#include <sys/syscall.h>

// The syscall of the next library (libc_syscall_amd64.S).
uintptr_t ta_next_syscall;

void ta_filter_resolve(void);

static int prepares_filter(long number, long option)
{
	return number == SYS_seccomp ||
		(number == SYS_prctl && (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS));
}

// Whether the call sets a filter. Without a program it asks what the kernel knows.
static int sets_filter(long number, long option, long mode, const void *program)
{
	if (number == SYS_seccomp)
		return option == SECCOMP_SET_MODE_STRICT ||
			(option == SECCOMP_SET_MODE_FILTER && program != NULL);
	return number == SYS_prctl && option == PR_SET_SECCOMP &&
		(mode == SECCOMP_MODE_STRICT || program != NULL);
}

static int is_for_one_thread(long number, long option)
{
	enum { ALONE = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM };
	return (number == SYS_unshare && option & ALONE) || number == SYS_setns ||
		(number == SYS_prctl && option == PR_SET_KEEPCAPS);
}

void ta_notice(long number, long option, long mode, const void *program)
{
	if (sets_filter(number, option, mode, program))
		ta_report_last();
	int filter = prepares_filter(number, option);
	if (filter) {
		ta_flags.Filtered = 1;
		if (ta_mode == TA_ACTIVE)
			ta_fork_mark();
	}
	if (filter || is_for_one_thread(number, option))
		ta_waiter_dismiss();
}

EXPORT int unshare(int flags)
{
	ta_symbols_resolve();
	ta_notice(SYS_unshare, flags, 0, NULL);
	return TA_RARE(unshare)(flags);
}

EXPORT int setns(int fd, int type)
{
	ta_symbols_resolve();
	ta_notice(SYS_setns, fd, 0, NULL);
	return TA_RARE(setns)(fd, type);
}

void ta_filter_resolve(void)
{
	if (ta_next_syscall != 0)
		return;
	ta_symbols_resolve();
	ta_next_syscall = (uintptr_t)ta_symbol_next("syscall");
}
