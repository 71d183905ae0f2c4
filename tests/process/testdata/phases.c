// Phases of 40 MiB in blocks of ten sizes, twice, so that each also follows another; all of one
// phase is freed before the next. Each page is touched once at least, or the group would not count
// it.
#include "common.h"

enum { PHASE = 40 << 20 };

int main(void)
{
	static const size_t sizes[] = {
		32, 100, 600, 3000, 10000, 40000, 150000, 700000, 3000000, 9000000};
	static char *blocks[PHASE / 32];
	for (int round = 0; round < 2; round++)
		for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			size_t n = PHASE / sizes[s];
			for (size_t i = 0; i < n; i++) {
				CHECK((blocks[i] = malloc(sizes[s])) != NULL);
				for (size_t at = 0; at < sizes[s]; at += 4096)
					blocks[i][at] = 1;
				blocks[i][sizes[s] - 1] = 1;
			}
			for (size_t i = 0; i < n; i++)
				free(blocks[i]);
		}
	return 0;
}
