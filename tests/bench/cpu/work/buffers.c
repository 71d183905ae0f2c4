// Buffers of programs that read records, in three phases: one at a time, each of another size; a
// few in turn; and one after another that grows by half until it has 600 KiB. What it costs is how
// memory passes from one size to the next.
#include "work.h"

#define FEW 4

struct hand {
	APART uint64_t random, sum;
};

// Makes the block n bytes or longer.
static void grow(struct block *b, size_t n)
{
	while (b->n < n) {
		check(b->p, b->n, b->key);
		b->n += b->n / 2;
		b->p = realloc(b->p, b->n);
		if (b->p == NULL)
			die("realloc");
		stamp(b->p, b->n, b->key);
	}
}

static void *work(void *arg)
{
	struct hand *h = arg;
	struct block few[FEW] = {0};
	for (long i = scaled(800000); i > 0; i--) {
		uint64_t r = next(&h->random);
		struct block one = get(skewed(r, 12, 16), r);
		h->sum += put(&one);
	}
	for (long i = scaled(20000); i > 0; i--) {
		uint64_t r = next(&h->random);
		struct block *b = &few[r % FEW];
		h->sum += put(b);
		*b = get(skewed(r, 14, 22), r);
	}
	for (int i = 0; i < FEW; i++)
		h->sum += put(&few[i]);
	for (long i = scaled(20000); i > 0; i--) {
		struct block b = get(PAGE, next(&h->random));
		grow(&b, 600 << 10);
		h->sum += put(&b);
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
	return finish(sum);
}
