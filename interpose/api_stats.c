// ta_get_stats, ta_stats_json and ta_stats_write: the figures of the heap.
#include <errno.h>
#include <string.h>
#include "boot.h"
#include "exports.h"
#include "libc_symbol.h"
#include "tieralloc.h"

TA_CHECK_STATS;
TA_CHECK_TIER_STATS;

EXPORT int ta_get_stats(ta_stats *out)
{
	enum { PLAUSIBLE = 4096 }; // a larger size means that the caller has not set it
	if (out == NULL || out->size < 16 || out->size > PLAUSIBLE)
		return errno = EINVAL, -1;
	ta_ready();
	uintptr_t e = ta_go_stats(ta_token(), (uintptr_t)out, out->size);
	return e == 0 ? 0 : (errno = (int)e, -1);
}

EXPORT size_t ta_stats_json_with(char *buf, size_t n, unsigned flags)
{
	if (flags & ~(unsigned)TA_STATS_EXACT_NODES)
		return errno = EINVAL, 0;
	ta_ready();
	ta_tables();
	size_t need = ta_go_stats_json(ta_token(), (uintptr_t)buf, n, flags & TA_STATS_EXACT_NODES);
	if (need == 0)
		errno = ENOMEM;
	return need;
}

EXPORT size_t ta_stats_json(char *buf, size_t n) { return ta_stats_json_with(buf, n, 0); }

EXPORT int ta_stats_write(const char *path)
{
	ta_ready();
	ta_tables();
	uintptr_t e = ta_go_stats_write(ta_token(), (uintptr_t)path, TA_RARE(strlen)(path));
	return e == 0 ? 0 : (errno = (int)e, -1);
}
