// Notices that the program prepares a filter of system calls (seccomp). A filter may end the
// process for a call that it does not know, so from then on the heap reads no files
// (alloc/limit.go). A filter that the process began with is no danger: it knows the calls that
// start a program.
#include <stddef.h>
#include <sys/prctl.h>
#include "libc_symbol.h"
#include "boot.h"
#include <sys/syscall.h>

void ta_filter_notice(long number, long option)
{
	if (number == SYS_seccomp ||
		(number == SYS_prctl && (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS)))
		ta_flags.Filtered = 1;
}

// Declared without the ellipsis of libc's declaration. So the compiler can make a tail call, and a
// child of clone without thread-local storage can make the call.
EXPORT long ta_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__(
	"syscall");

long ta_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	static long (*next)(long, long, long, long, long, long, long);
	if (UNLIKELY(next == NULL)) {
		ta_symbols_resolve();
		next = (long (*)(long, long, long, long, long, long, long))ta_symbol_next("syscall");
	}
	ta_filter_notice(number, a);
	return next(number, a, b, c, d, e, f);
}
