// Exit: the handlers that write the report.
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

// Registers for exit at the very first call, before the constructor of any other library runs. So
// the handler runs after all others. It is registered for no library, so that no dlclose runs it
// earlier. The functions are those behind atexit and at_quick_exit.
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
