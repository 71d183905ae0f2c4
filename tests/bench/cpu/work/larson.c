// A server's churn, after Larson and Krishnan, "Memory allocation for long-running server
// applications" (ISMM 1998): each thread replaces blocks at random among five thousand, and
// after a while hands all of them to a successor, which frees what it did not allocate.
#include "work.h"

#define SLOTS       5000
#define GENERATIONS 10

struct shop {
	APART struct block slot[SLOTS];
	uint64_t random, sum;
};

static void *serve(void *arg)
{
	struct shop *s = arg;
	long steps = scaled(900000);
	for (long i = 0; i < steps; i++) {
		uint64_t r = next(&s->random);
		struct block *b = &s->slot[r % SLOTS];
#ifdef STILL
		if (b->p != NULL) {
			s->sum += again(b, r);
			continue;
		}
#endif
		s->sum += put(b);
		*b = get(between(r, 8, 1000), r);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	begin(argc, argv);
	struct shop *shops = table((size_t)threads, sizeof *shops);
	for (int i = 0; i < threads; i++)
		shops[i].random = seed((uint64_t)i);
	for (int g = 0; g < GENERATIONS; g++)
		crew(threads, serve, shops, sizeof *shops);
	for (int i = 0; i < threads; i++) {
		for (int k = 0; k < SLOTS; k++)
			shops[i].sum += put(&shops[i].slot[k]);
		sum += shops[i].sum;
	}
	steady();
	return finish(sum);
}
