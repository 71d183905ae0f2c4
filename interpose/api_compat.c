// Functions of TierAlloc that tieralloc.h does not have. Only programs that were built with
// TierAlloc's own header call the first two; tieralloc_compat.h replaces these calls.
#include <errno.h>
#include "heap.h"
#include "libc_symbol.h"
#include "boot.h"
#include "syscall.h"
#include "exports.h"
#include "tieralloc.h"

EXPORT void ta_init_from_env(void)
{
	static const char line[] =
		"tieralloc: the program was built with TierAlloc's own header, whose ta_tier_of and"
		" ta_get_stats have other parameters; build it with tieralloc_compat.h\n";
	static int told;
	if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		ta_sys4(SYS_write, 2, (uintptr_t)line, sizeof line - 1, 0);
}

EXPORT void ta_set_default_config(void) {}

EXPORT const char *ta_hello(void)
{
	ta_ready();
	return ta_flags.Disabled ? "tieralloc-disabled" : "tieralloc-ok";
}

EXPORT int ta_advise(void *p, ta_hint hint)
{
	if ((unsigned)hint > TA_PREFER_FAST)
		return errno = EINVAL, -1;
	return ta_tier_of(p) < 0 ? -1 : 0;
}

EXPORT long ta_charge_bytes(ta_tier tier, unsigned long long bytes, long *info)
{
	if ((unsigned)tier > TA_SLOW)
		return errno = EINVAL, -1;
	ta_ready();
	ta_heap *h = ta_flags.Disabled || !ta_flags.Throttled ? NULL : ta_enter_heap();
	if (h == NULL)
		return 0;
	long ns = (long)ta_go_charge((uintptr_t)h, tier, bytes);
	ta_leave(h);
	if (info != NULL)
		*info += ns;
	return ns;
}
