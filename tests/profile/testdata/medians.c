// medians holds blocks of three sites for 10 ms, 100 ms and a second, never frees those of a
// fourth, and frees blocks of log-uniform sizes between 1 KiB and 1 MiB of a fifth at once. Then it
// allocates from 80 stacks.
#include <math.h>
#include <stdlib.h>
#include <time.h>

#define SITE(name) \
	__attribute__((noinline)) static char *name(size_t n) \
	{ \
		char *p = malloc(n); \
		*p = 1; \
		return p; \
	}
// clang-format off
SITE(held10) SITE(held100) SITE(held1000) SITE(kept) SITE(sized)

enum { BYTES = 3 << 20, SMALL = 40000 };
// clang-format on

__attribute__((noinline)) static char *deep(int depth)
{
	char *p = depth == 0 ? malloc(200000) : deep(depth - 1);
	*p += 1;
	return p;
}

int main(void)
{
	struct timespec pause = {0, 10 * 1000 * 1000};
	char *volatile leak;
	char *second = held1000(BYTES);
	for (int i = 0; i < 10; i++) {
		char *tenth = held100(BYTES);
		for (int k = 0; k < 10; k++) {
			char *hundredth = held10(SMALL);
			leak = kept(SMALL);
			nanosleep(&pause, NULL);
			free(hundredth);
		}
		free(tenth);
	}
	free(second);
	srand(1);
	for (int i = 0; i < 5000; i++)
		free(sized((size_t)exp2(10 + 10.0 * rand() / RAND_MAX)));
	for (int i = 0; i < 80; i++)
		leak = deep(i);
	(void)leak;
	return 0;
}
