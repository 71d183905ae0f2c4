// sites SEED MEGABYTES allocates from 20 functions, site0 to site19, of blocks of 16 bytes to 64
// MiB, with shares of the bytes between 1 and 1/64. It frees most blocks soon, some late and some
// never, and prints for each site its name, and the bytes allocated and in use at the end.
#include <stdio.h>
#include <stdlib.h>

enum { SITES = 20, KEPT = 1 << 16 };

static const size_t sizes[SITES] = {16, 24, 48, 100, 160, 256, 500, 1024, 1500, 4096, 9000, 16384,
	40000, 65536, 150000, 300000, 1 << 20, 4 << 20, 9 << 20, 64 << 20};
static size_t allocated[SITES], used[SITES];
static struct {
	char *block;
	int site;
} kept[KEPT];

static unsigned long state;

static unsigned draw(unsigned n)
{
	state = state * 6364136223846793005ul + 1442695040888963407ul;
	return (state >> 33) % n;
}

#define SITE(i) \
	__attribute__((noinline)) static void *site##i(void) \
	{ \
		char *p = malloc(sizes[i]); \
		*p = 1; \
		return p; \
	}
// clang-format off
SITE(0) SITE(1) SITE(2) SITE(3) SITE(4) SITE(5) SITE(6) SITE(7) SITE(8) SITE(9) SITE(10) SITE(11)
SITE(12) SITE(13) SITE(14) SITE(15) SITE(16) SITE(17) SITE(18) SITE(19)
static void *(*const site[SITES])(void) = {site0, site1, site2, site3, site4, site5, site6, site7,
	site8, site9, site10, site11, site12, site13, site14, site15, site16, site17, site18, site19};
// clang-format on

static void allocate(int s)
{
	char *p = site[s]();
	allocated[s] += sizes[s];
	unsigned i = draw(KEPT);
	if (draw(8) != 0 || sizes[s] > 1 << 20) {
		free(p);
		return;
	}
	if (kept[i].block != NULL) {
		used[kept[i].site] -= sizes[kept[i].site];
		free(kept[i].block);
	}
	kept[i].block = p;
	kept[i].site = s;
	used[s] += sizes[s];
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	state = strtoul(argv[1], NULL, 10);
	size_t all = strtoul(argv[2], NULL, 10) << 20, goal[SITES];
	for (int s = 0; s < SITES; s++)
		goal[s] = all >> s % 7;
	for (int going = 1; going;) {
		going = 0;
		for (int s = 0; s < SITES; s++) {
			// about as many bytes from each in a round
			for (size_t n = 0; n < goal[s] / 64 && allocated[s] < goal[s]; n += sizes[s])
				allocate(s);
			going |= allocated[s] < goal[s];
		}
	}
	for (int s = 0; s < SITES; s++)
		printf("site%d %zu %zu\n", s, allocated[s], used[s]);
	return 0;
}
