#include <stdint.h>
#include "libc_profile.h"

int ta_profile_free(ta_page *pg, void *p)
{
	uint64_t other = pg->Owner ^ (uint64_t)ta_self;
	if ((other & ~(TA_OWNER_FULL | TA_OWNER_WARM)) != 0 || ta_self->Profiled == NULL)
		return 0;
	struct ta_cachelist *s = &ta_self->Profiled->Lists[pg->Class];
	if (s->Room == 0 || !ta_sane(pg, p))
		return 0;
	ta_push_cached(s, p);
	if (other != TA_OWNER_FULL && --s->Credit <= 0)
		return TA_PROFILE_TICK;
	return TA_PROFILE_FREED;
}
