// Sizes up to 8,000 with frees across threads, after Jansson's rpmalloc-benchmark: each thread
// replaces parts of what it holds, the smaller a size the likelier, and every so often passes
// a batch on to its neighbour.
#include "work.h"

#define HELD  2000
#define BATCH 100

struct hand {
	APART struct parcel *held[HELD];
	_Atomic(struct parcel **) inbox;
	struct hand *neighbour;
	uint64_t random, sum;
};

// The density of sizes falls linearly to zero at 8,000: the lesser of two random ones.
static size_t size_of(uint64_t r)
{
	size_t a = (r >> 8) % 8000, b = (r >> 32) % 8000;
	return 16 + (a < b ? a : b);
}

static uint64_t empty(struct parcel **batch)
{
	uint64_t sum = 0;
	if (batch == NULL)
		return 0;
	for (int i = 0; i < BATCH; i++)
		sum += unpack(batch[i]);
	free(batch);
	return sum;
}

static void *work(void *arg)
{
	struct hand *h = arg;
	long rounds = scaled(14000);
	for (long i = 0; i < rounds; i++) {
		struct parcel **batch = malloc(BATCH * sizeof *batch);
		if (batch == NULL)
			die("malloc");
		for (int k = 0; k < BATCH; k++) {
			uint64_t r = next(&h->random), s = next(&h->random);
			struct parcel **place = &h->held[r % HELD];
			h->sum += unpack(*place);
			*place = pack(size_of(r), r);
			batch[k] = pack(size_of(s), s);
		}
		h->sum += empty(atomic_exchange(&h->neighbour->inbox, batch));
		h->sum += empty(atomic_exchange(&h->inbox, NULL));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	begin(argc, argv);
	struct hand *hands = table((size_t)threads, sizeof *hands);
	for (int i = 0; i < threads; i++) {
		hands[i].random = seed((uint64_t)i);
		hands[i].neighbour = &hands[(i + 1) % threads];
	}
	crew(threads, work, hands, sizeof *hands);
	for (int i = 0; i < threads; i++) {
		for (int k = 0; k < HELD; k++)
			sum += unpack(hands[i].held[k]);
		sum += hands[i].sum + empty(atomic_load(&hands[i].inbox));
	}
	steady();
	return finish(sum);
}
