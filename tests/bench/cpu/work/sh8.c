// A mix of sizes that changes hands, after MicroQuill's shbench (sh8bench): as sh6, but every
// third block is put in an exchange, where whoever comes next takes it out and frees it.
#include "work.h"

#define BLOCKS   20000
#define EXCHANGE 8192

static _Atomic(struct parcel *) exchange[EXCHANGE];

struct hand {
	APART uint64_t random, sum;
};

static void *work(void *arg)
{
	struct hand *h = arg;
	struct parcel **item = table(BLOCKS, sizeof *item);
	long rounds = scaled(80);
	for (long i = 0; i < rounds; i++) {
		for (int k = 0; k < BLOCKS; k++) {
			uint64_t r = next(&h->random);
			item[k] = pack(r >> 60 != 0 ? between(r, 24, 300) : between(r, 300, 3000), r);
		}
		for (int k = 0; k < BLOCKS; k += 3)
			item[k] = atomic_exchange(&exchange[next(&h->random) % EXCHANGE], item[k]);
		if (i % 2 == 0)
			for (int k = 0; k < BLOCKS; k++)
				h->sum += unpack(item[k]);
		else
			for (int k = BLOCKS; k-- > 0;)
				h->sum += unpack(item[k]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct hand hands[MAX_THREADS];
	uint64_t sum = 0;
	begin(argc, argv);
	for (int i = 0; i < threads; i++)
		hands[i].random = seed((uint64_t)i);
	crew(threads, work, hands, sizeof *hands);
	for (int i = 0; i < threads; i++)
		sum += hands[i].sum;
	for (int i = 0; i < EXCHANGE; i++)
		sum += unpack(atomic_load(&exchange[i]));
	return finish(sum);
}
