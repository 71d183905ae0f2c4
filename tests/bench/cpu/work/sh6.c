// A mix of sizes, after MicroQuill's shbench (sh6bench): each thread allocates many thousands of
// blocks, mostly small, and frees them partly in the order of allocation, partly in the
// opposite one, while some stay for longer.
#include "work.h"

#define BLOCKS 40000
#define KEPT   10000

struct hand {
	APART struct block block[BLOCKS], kept[KEPT];
	uint64_t random, sum;
};

// Small sizes are the likely ones: half are below 64, one in 250 is above 4 KB.
static size_t size_of(uint64_t r)
{
	unsigned kind = r >> 56;
	if (kind < 128)
		return between(r, 1, 64);
	if (kind < 224)
		return between(r, 64, 400);
	return kind < 255 ? between(r, 400, 1000) : between(r, 4096, 20000);
}

static void *work(void *arg)
{
	struct hand *h = arg;
	long rounds = scaled(42);
	for (long i = 0; i < rounds; i++) {
		for (int k = 0; k < BLOCKS; k++) {
			uint64_t r = next(&h->random);
			h->block[k] = get(size_of(r), r);
		}
		for (int k = (int)(i % 7); k < BLOCKS; k += 17) {
			struct block *old = &h->kept[next(&h->random) % KEPT], b = *old;
			*old = h->block[k];
			h->block[k] = b;
		}
		for (int k = 0; k < BLOCKS / 2; k++)
			h->sum += put(&h->block[k]);
		for (int k = BLOCKS; k-- > BLOCKS / 2;)
			h->sum += put(&h->block[k]);
	}
	for (int k = 0; k < KEPT; k++)
		h->sum += put(&h->kept[k]);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	begin(argc, argv);
	struct hand *hands = table((size_t)threads, sizeof *hands);
	for (int i = 0; i < threads; i++)
		hands[i].random = seed((uint64_t)i);
	crew(threads, work, hands, sizeof *hands);
	for (int i = 0; i < threads; i++)
		sum += hands[i].sum;
	return finish(sum);
}
