// Exit: the report.
#include <errno.h>
#include "boot.h"
#include "exports.h"
#include "libc_symbol.h"

HOT static void report(void)
{
	if (LIKELY(!ta_flags.Reports) || !ta_thread_is_ours())
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

// Registers for exit at the very first call, before any other library's constructor runs. Our
// handler belongs to no library that could be finalised, so it runs after all others. The functions
// are those behind atexit and at_quick_exit.
HOT void ta_exit_watch(void)
{
	if (!ta_flags.Reports)
		return;
	ta_own.cxa_atexit(report_at_exit, NULL, NULL);
	ta_own.cxa_at_quick_exit(report_at_exit, NULL);
}

HOT EXPORT _Noreturn void _exit(int status)
{
	ta_symbols_resolve();
	report();
	ta_next.exit(status);
	__builtin_unreachable();
}

HOT EXPORT _Noreturn __attribute__((alias("_exit"))) void _Exit(int status);
