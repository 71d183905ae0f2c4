// A peak that passes: 400 MB of objects of 1,000 bytes, all freed. The steady figure is what
// the process keeps of it.
#include "work.h"

int main(int argc, char **argv)
{
	uint64_t sum = 0, random = seed(0);
	begin(argc, argv);
	long n = scaled(400000);
	struct block *block = table((size_t)n, sizeof *block);
	for (long i = 0; i < n; i++)
		block[i] = get(1000, next(&random));
	for (long i = 0; i < n; i++)
		sum += put(&block[i]);
	munmap(block, (size_t)n * sizeof *block);
	steady();
	return finish(sum);
}
