/* tieralloc_compat.h - TierAlloc's names, for programs written against its header.
 *
 * Include it in place of that header, or leave the program as it is and compile it with
 * -include tieralloc_compat.h. The numbers of tiers and hints are the same on both sides.
 * docs/coming-from.md says what differs. */
#ifndef TIERALLOC_COMPAT_H
#define TIERALLOC_COMPAT_H

#include <stdio.h>
#include <string.h>
#include "tieralloc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef ta_tier ta_tier_t;
#define TA_TIER_FAST   TA_FAST
#define TA_TIER_NORMAL TA_NORMAL
#define TA_TIER_SLOW   TA_SLOW

typedef ta_hint ta_hint_t;
#define TA_HINT_DEFAULT     TA_DEFAULT
#define TA_HINT_HOT         TA_HOT
#define TA_HINT_WARM        TA_WARM
#define TA_HINT_COLD        TA_COLD
#define TA_HINT_PIN_FAST    TA_PIN_FAST
#define TA_HINT_PREFER_FAST TA_PREFER_FAST

typedef struct {
	double bandwidth_Bps;
	long base_latency_ns;
	unsigned long long capacity_bytes;
} ta_tier_cfg_t;

typedef struct {
	long simulated_wait_ns;
} ta_charge_info_t;

/* Figures by tier. A move counts as an allocation in the tier that it goes to and a free in the
 * other. bytes_current = bytes_total_alloc - bytes_total_freed, and the totals never fall. */
typedef struct {
	unsigned long long alloc_calls[3], free_calls[3];
	unsigned long long bytes_current[3], bytes_total_alloc[3], bytes_total_freed[3];
	unsigned long long simulated_wait_ns[3];
} ta_stats_snapshot_t;

/* Returns "tieralloc-ok", or "tieralloc-disabled" with TA_DISABLE=1. */
const char *ta_hello(void);

/* Checks its arguments and changes nothing; use ta_move. Returns 0, or -1 with errno EINVAL if hint
 * is not a hint or p is not a block of the library. */
int ta_advise(void *p, ta_hint_t hint);

/* Charges the tier's throttle with an access to so many bytes. With TA_THROTTLE=sleep the call
 * takes that time. Returns the nanoseconds charged, and adds them to info, which may be NULL. They
 * are 0 without a throttle (TA_MODEL=cxl, TA_FAST_BW, ...). Returns -1 with errno EINVAL if tier is
 * not a tier. */
long ta_charge_bytes(ta_tier_t tier, unsigned long long bytes, ta_charge_info_t *info);

/* Do nothing: the library read the environment when it was loaded. */
static inline void ta_compat_init_from_env(void) {}
static inline void ta_compat_set_default_config(void) {}

/* Sets out to the tier of the block. Returns 0, -1 for a NULL, or -2 if p is not a block of the
 * library. */
static inline int ta_compat_tier_of(const void *p, ta_tier_t *out)
{
	if (p == NULL || out == NULL)
		return -1;
	int tier = ta_tier_of(p);
	if (tier < 0)
		return -2;
	*out = (ta_tier_t)tier;
	return 0;
}

static inline void ta_compat_get_stats(ta_stats_snapshot_t *out)
{
	ta_stats s;
	s.size = sizeof s;
	if (out == NULL)
		return;
	memset(out, 0, sizeof *out);
	if (ta_get_stats(&s) != 0)
		return;
	for (int i = 0; i < 3; i++) {
		const ta_tier_stats *t = &s.tiers[i];
		out->alloc_calls[i] = t->blocks_entered;
		out->free_calls[i] = t->blocks_left;
		out->bytes_current[i] = t->bytes_entered - t->bytes_left;
		out->bytes_total_alloc[i] = t->bytes_entered;
		out->bytes_total_freed[i] = t->bytes_left;
		out->simulated_wait_ns[i] = t->simulated_wait_ns;
	}
}

/* Writes the six arrays of the snapshot as one JSON object, as snprintf does. ta_stats_write writes
 * the library's whole report. */
static inline int ta_compat_stats_json(char *buf, unsigned long long n)
{
	ta_stats_snapshot_t s;
	ta_compat_get_stats(&s);
#define TA_COMPAT_LIST(a) (a)[0], (a)[1], (a)[2]
	return snprintf(buf, n,
		"{\"alloc_calls\": [%llu, %llu, %llu], \"free_calls\": [%llu, %llu, %llu], "
		"\"bytes_current\": [%llu, %llu, %llu], \"bytes_total_alloc\": [%llu, %llu, %llu], "
		"\"bytes_total_freed\": [%llu, %llu, %llu], \"simulated_wait_ns\": [%llu, %llu, %llu]}",
		TA_COMPAT_LIST(s.alloc_calls), TA_COMPAT_LIST(s.free_calls),
		TA_COMPAT_LIST(s.bytes_current), TA_COMPAT_LIST(s.bytes_total_alloc),
		TA_COMPAT_LIST(s.bytes_total_freed), TA_COMPAT_LIST(s.simulated_wait_ns));
#undef TA_COMPAT_LIST
}

#define ta_init_from_env      ta_compat_init_from_env
#define ta_set_default_config ta_compat_set_default_config
#define ta_tier_of            ta_compat_tier_of
#define ta_get_stats          ta_compat_get_stats
#define ta_stats_json         ta_compat_stats_json

#ifdef __cplusplus
}
#endif
#endif
