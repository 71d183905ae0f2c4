// bench_roll [STEPS [BATCH [BYTES]]] has in each step, of 10, a batch of 8 more blocks of 8 MiB as
// HOT, and from the third one on moves the oldest block to the slow tier, behind the newest. For
// each step it prints a line of JSON.
#include "run.h"

int main(int argc, char **argv)
{
	program = "bench_roll";
	size_t steps = number(argc, argv, 1, 10), batch = number(argc, argv, 2, 8),
		   bytes = number(argc, argv, 3, 8 << 20);
	ta_init_from_env();
	size_t first = 0, end = 0;
	void **block = room_for(steps, (batch + 1) * sizeof *block);
	for (size_t step = 1; step <= steps; step++) {
		for (size_t i = 0; i < batch; i++)
			block[end++] = allocate(bytes, TA_HINT_HOT);
		void *moved = end - first > 2 * batch ? ta_move(block[first], TA_TIER_SLOW) : NULL;
		if (moved != NULL) {
			first++;
			block[end++] = moved;
		}
		tell(step, moved != NULL ? "a block has moved" : "no block has moved", end - first);
	}
	while (first < end)
		ta_free(block[first++]);
	free(block);
	return 0;
}
