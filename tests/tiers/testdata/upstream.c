// A program written against TierAlloc's header, as C and as C++. It is compiled with
// tieralloc_compat.h in front, and takes no path that this header's document does not promise.
#include "tieralloc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(x) ((x) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #x), exit(1)))

static const struct {
	ta_hint_t hint;
	int number;
	ta_tier_t tier;
} hints[] = {
	{TA_HINT_DEFAULT, 0, TA_TIER_NORMAL},
	{TA_HINT_HOT, 1, TA_TIER_FAST},
	{TA_HINT_WARM, 2, TA_TIER_NORMAL},
	{TA_HINT_COLD, 3, TA_TIER_SLOW},
	{TA_HINT_PIN_FAST, 4, TA_TIER_FAST},
	{TA_HINT_PREFER_FAST, 5, TA_TIER_FAST},
};

static void numbers(void)
{
	MUST((int)TA_TIER_FAST == 0 && (int)TA_TIER_NORMAL == 1 && (int)TA_TIER_SLOW == 2);
	for (int i = 0; i < 6; i++)
		MUST((int)hints[i].hint == hints[i].number);
}

static void blocks(void)
{
	for (int i = 0; i < 6; i++) {
		ta_tier_t tier = TA_TIER_SLOW;
		char *p = (char *)ta_alloc(300 * 1024, hints[i].hint);
		MUST(p != NULL && ta_tier_of(p, &tier) == 0 && tier == hints[i].tier);
		memset(p, 7, 300 * 1024);
		MUST(ta_advise(p, TA_HINT_COLD) == 0);
		if (hints[i].hint != TA_HINT_PIN_FAST) {
			char *q = (char *)ta_move(p, TA_TIER_SLOW);
			MUST(q != NULL && ta_tier_of(q, &tier) == 0 && tier == TA_TIER_SLOW &&
				q[300 * 1024 - 1] == 7);
			p = q;
		}
		ta_free(p);
	}
	ta_tier_t tier;
	int local;
	MUST(ta_tier_of(NULL, &tier) == -1 && ta_tier_of(&local, NULL) == -1 &&
		ta_tier_of(&local, &tier) == -2);
	MUST(ta_advise(&local, TA_HINT_HOT) == -1);
	ta_free(NULL);
}

static void statistics(void)
{
	static ta_stats_snapshot_t a, b;
	ta_get_stats(&a);
	char *p = (char *)ta_alloc(8 << 20, TA_HINT_HOT);
	MUST(p != NULL && ta_move(p, TA_TIER_SLOW) == p);
	ta_get_stats(&b);
	const int fast = TA_TIER_FAST, slow = TA_TIER_SLOW;
	MUST(b.alloc_calls[fast] == a.alloc_calls[fast] + 1 &&
		b.free_calls[fast] == a.free_calls[fast] + 1);
	MUST(
		b.alloc_calls[slow] == a.alloc_calls[slow] + 1 && b.free_calls[slow] == a.free_calls[slow]);
	MUST(b.bytes_current[slow] == a.bytes_current[slow] + (8 << 20) &&
		b.bytes_current[fast] == a.bytes_current[fast]);
	for (int i = 0; i < 3; i++)
		MUST(b.bytes_current[i] == b.bytes_total_alloc[i] - b.bytes_total_freed[i]);
	ta_free(p);
	char small[8], text[512];
	int need = ta_stats_json(NULL, 0);
	MUST(need > 0 && need < 512 && ta_stats_json(small, sizeof small) > 0 && strlen(small) == 7);
	MUST(ta_stats_json(text, sizeof text) == (int)strlen(text));
	puts(text);
}

static void costs(void)
{
	ta_charge_info_t info = {5};
	long fast = ta_charge_bytes(TA_TIER_FAST, 100, &info),
		 slow = ta_charge_bytes(TA_TIER_SLOW, 100, NULL);
	MUST(info.simulated_wait_ns == 5 + fast);
	printf("%ld %ld\n", fast, slow);
}

int main(void)
{
	ta_init_from_env();
	ta_set_default_config();
	numbers();
	puts(ta_hello());
	costs();
	blocks();
	statistics();
	return 0;
}
