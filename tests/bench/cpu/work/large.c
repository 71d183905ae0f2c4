// Large blocks of random size and life, after mimalloc-bench's malloc-large: up to 20 blocks
// of 5 to 25 MiB, all of whose pages are used. What it costs is what the kernel is asked.
#include "work.h"

#define SLOTS 20

int main(int argc, char **argv)
{
	static struct block slot[SLOTS];
	uint64_t sum = 0, random = seed(0);
	begin(argc, argv);
	long steps = scaled(300);
	for (long i = 0; i < steps; i++) {
		uint64_t r = next(&random);
		struct block *b = &slot[r % SLOTS];
		sum += put(b);
		*b = get(between(r, 5ul << 20, 25ul << 20), r);
	}
	for (int i = 0; i < SLOTS; i++)
		sum += put(&slot[i]);
	steady();
	return finish(sum);
}
