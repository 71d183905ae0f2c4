// Notices that the program prepares a filter of system calls (seccomp). A filter may end the
// process for a call that it does not know, so from then on the heap reads no files
// (alloc/limit.go), and forks that no handler sees have their mark (boot_fork.c). A filter that the
// process began with is no danger: it knows the calls that start a program.
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include "libc_symbol.h"
#include "boot.h"
#include <sys/syscall.h>

// The syscall of the next library (libc_syscall_amd64.S).
uintptr_t ta_next_syscall;

void ta_filter_resolve(void);

void ta_filter_notice(long number, long option)
{
	if (number == SYS_seccomp ||
		(number == SYS_prctl && (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS))) {
		ta_flags.Filtered = 1;
		if (ta_mode == TA_ACTIVE)
			ta_fork_mark();
	}
}

void ta_filter_resolve(void)
{
	if (ta_next_syscall != 0)
		return;
	ta_symbols_resolve();
	ta_next_syscall = (uintptr_t)ta_symbol_next("syscall");
}
