// Exit: the handlers that write the report.
#include <errno.h>
#include "boot.h"
#include "exports.h"
#include "libc_symbol.h"

// Returns whether there was a report to write.
HOT static int report(void)
{
	if (LIKELY(!ta_flags.Reports) || !ta_thread_is_ours())
		return 0;
	int saved = errno;
	ta_go_report(ta_token());
	errno = saved;
	return 1;
}

void ta_report_last(void)
{
	if (report())
		ta_flags.Reports = 0;
}

HOT static void report_at_exit(void *unused)
{
	(void)unused;
	report();
}

// The next library's _exit. It is found at boot, because a search would cost each forked child that
// calls it four page faults.
static void (*next_exit)(int);

HOT static void find_exit(void)
{
	static const char name[] HOT_DATA = "_exit";
	ta_symbols_resolve();
	next_exit = (void (*)(int))ta_symbol_next(name);
}

// Registers for exit at the very first call, before the constructor of any other library runs. So
// the handler runs after all others. It is registered for no library, so that no dlclose runs it
// earlier. The functions are those behind atexit and at_quick_exit.
HOT void ta_exit_watch(void)
{
	find_exit();
	if (!ta_flags.Reports)
		return;
	static const ta_symbol_name names[] HOT_DATA = {"__cxa_atexit", "__cxa_at_quick_exit"};
	struct {
		int (*exit)(void (*)(void *), void *, void *), (*quick_exit)(void (*)(void *), void *);
	} at = {NULL, NULL};
	ta_symbols_own(&at, names, 2);
	at.exit(report_at_exit, NULL, NULL);
	at.quick_exit(report_at_exit, NULL);
}

HOT EXPORT _Noreturn void _exit(int status)
{
	report();
	if (UNLIKELY(next_exit == NULL))
		find_exit();
	next_exit(status);
	__builtin_unreachable();
}

HOT EXPORT _Noreturn __attribute__((alias("_exit"))) void _Exit(int status);
