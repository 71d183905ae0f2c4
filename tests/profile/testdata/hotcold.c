// hotcold SITES SECONDS fills 16 MiB that it then reads often and 48 MiB that it reads a twentieth
// as often, in blocks of 64 KiB that lie among each other. With SITES 2 hot and cold blocks come
// from two call sites behind the same wrapper, with 1 from one. It prints how many hot and cold
// blocks are in each tier, if the library is there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 64 << 10, HOT = 256, COLD = 768 };

int ta_tier_of(const void *p) __attribute__((weak));

#define APART __attribute__((noinline, noclone))

APART static char *wrapper(void) { return memset(malloc(BLOCK), 1, BLOCK); }
APART static char *hot_site(void) { return memset(wrapper(), 2, BLOCK); }
APART static char *cold_site(void) { return memset(wrapper(), 3, BLOCK); }

static char *hot[HOT], *cold[COLD];
static unsigned long state;

static unsigned draw(unsigned n)
{
	state = state * 6364136223846793005ul + 1442695040888963407ul;
	return (state >> 33) % n;
}

static void count(const char *what, char **blocks, int n)
{
	int tiers[3] = {0};
	for (int i = 0; i < n; i++)
		if (ta_tier_of != NULL)
			tiers[ta_tier_of(blocks[i]) % 3]++;
	printf("%s %d %d %d\n", what, tiers[0], tiers[1], tiers[2]);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	int two = atoi(argv[1]) == 2;
	for (int i = 0; i < HOT + COLD; i++) {
		char *p = two && i % 4 != 0 ? cold_site() : hot_site();
		if (i % 4 == 0)
			hot[i / 4] = p;
		else
			cold[i - i / 4 - 1] = p;
	}
	count("hot", hot, HOT);
	count("cold", cold, COLD);
	unsigned long sum = 0;
	for (time_t end = time(NULL) + atoi(argv[2]); time(NULL) < end; usleep(100))
		for (int i = 0; i < 300; i++)
			sum += draw(20) == 0 ? cold[draw(COLD)][draw(BLOCK)] : hot[draw(HOT)][draw(BLOCK)];
	return sum == 0;
}
