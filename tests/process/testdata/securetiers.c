// The tiers of small blocks and what is counted of them, with TA_NORMAL_SOFT=64K.
#include "../../../interpose/tieralloc.h"
#include <stdio.h>
#include <stdlib.h>

#pragma weak ta_alloc
#pragma weak ta_get_stats
#pragma weak ta_set_hint
#pragma weak ta_tier_of

#define MUST(x) ((x) ? 0 : (printf("line %d: %s\n", __LINE__, #x), exit(1)))

static ta_stats figures(void)
{
	ta_stats s = {.size = sizeof s};
	MUST(ta_get_stats(&s) == 0);
	return s;
}

int main(void)
{
	for (int i = 0; i < 600; i++)
		free(malloc(200));
	void *p = ta_alloc(100, TA_PIN_FAST);
	free(malloc(30));
	MUST(ta_tier_of(p) == TA_FAST);
	MUST(ta_tier_of(realloc(p, 200)) == TA_FAST);

	ta_stats before = figures();
	ta_set_hint(TA_COLD);
	ta_stats after = figures();
	for (int tier = 0; tier < 3; tier++)
		MUST(before.tiers[tier].blocks_entered == after.tiers[tier].blocks_entered);
	ta_set_hint(TA_WARM);

	static void *kept[10000]; // an empty page of NORMAL may serve the first ones
	int full = 0;
	do
		MUST(full < 10000 && (kept[full] = malloc(300)));
	while (ta_tier_of(kept[full++]) != TA_SLOW);
	before = figures();
	unsigned long in[3] = {0};
	for (int i = 0; i < 20000; i++) {
		void *volatile q = malloc(300);
		in[ta_tier_of(q)]++;
		free(q);
	}
	after = figures();
	for (int tier = 0; tier < 3; tier++)
		MUST(after.tiers[tier].blocks_entered - before.tiers[tier].blocks_entered == in[tier]);
	MUST(in[TA_SLOW] != 0);
	return 0;
}
