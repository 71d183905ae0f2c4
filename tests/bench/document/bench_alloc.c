// bench_alloc [BLOCKS [BYTES]] allocates blocks, 64 of 16 MiB, as HOT, WARM and COLD by turns,
// frees every other one, and then the rest. For each of the three steps it prints a line of JSON.
#include "run.h"

int main(int argc, char **argv)
{
	static const ta_hint_t turns[] = {TA_HINT_HOT, TA_HINT_WARM, TA_HINT_COLD};
	program = "bench_alloc";
	size_t blocks = number(argc, argv, 1, 64), bytes = number(argc, argv, 2, 16 << 20);
	ta_init_from_env();
	void **block = room_for(blocks, sizeof *block);
	for (size_t i = 0; i < blocks; i++)
		block[i] = allocate(bytes, turns[i % 3]);
	tell(1, "allocated", blocks);
	for (size_t i = 0; i < blocks; i += 2)
		ta_free(block[i]);
	tell(2, "half is freed", blocks / 2);
	for (size_t i = 1; i < blocks; i += 2)
		ta_free(block[i]);
	tell(3, "all is freed", 0);
	free(block);
	return 0;
}
