// A server's load with leftovers, after mimalloc's test-stress (Leijen et al., "Mimalloc:
// Free List Sharding in Action", APLAS 2019): threads come and go; each allocates, retains,
// frees and swaps objects with the others through shared slots. Some are zeroed, a few large.
#include "work.h"

#define GENERATIONS 24
#define SHARED      1000

static _Atomic(struct parcel *) shared[SHARED];

struct hand {
	APART uint64_t random, sum;
	struct parcel *spare; // with STILL: those to use again, linked by their seals
};

static size_t size_of(uint64_t r)
{
	if ((r >> 52) % 1000 == 0)
		return between(r, 64 << 10, 512 << 10);
	if ((r >> 52) % 50 == 0)
		return between(r, 1024, 32 << 10);
	return skewed(r, 4, 9);
}

// A parcel from calloc, which must be clear.
static struct parcel *pack_zeroed(size_t n, uint64_t key)
{
	if (n < sizeof(struct parcel) + 8)
		n = sizeof(struct parcel) + 8;
	char *p = calloc(1, n);
	if (p == NULL)
		die("calloc");
	for (size_t at = 0; at + 8 <= n; at += n > PAGE ? 256 : 8)
		if (read_word(p + at) != 0)
			corrupt(p, n, at);
	struct parcel *new = (void *)p;
	*new = (struct parcel){n, key, seal(n, key)};
	stamp(new->rest, n - sizeof *new, key);
	return new;
}

// A parcel that a thread makes.
static struct parcel *make(struct hand *h, uint64_t r)
{
	struct parcel *p = h->spare;
	if (p != NULL) {
		h->spare = (struct parcel *)p->seal;
		return fill(p, p->n, r);
	}
	return r % 8 == 0 ? pack_zeroed(size_of(r), r) : pack(size_of(r), r);
}

// A parcel goes away, if there is one.
static void drop(struct hand *h, struct parcel *p)
{
#ifdef STILL
	if (p != NULL) {
		h->sum += key_of(p);
		p->seal = (uint64_t)h->spare;
		h->spare = p;
	}
	return;
#endif
	h->sum += unpack(p);
}

static void *work(void *arg)
{
	struct hand *h = arg;
	long steps = scaled(60000), retained = 0, room = 0;
	struct parcel **kept = NULL;
	for (long i = 0; i < steps; i++) {
		uint64_t r = next(&h->random), s = next(&h->random);
		struct parcel *p = make(h, r);
		if (retained == room) {
			room = room * 2 + 64;
			if ((kept = realloc(kept, (size_t)room * sizeof *kept)) == NULL)
				die("realloc");
		}
		kept[retained++] = p;
		if (s % 4 != 0) { // three times of four one goes away
			long at = (long)((s >> 8) % (uint64_t)retained);
			p = kept[at];
			kept[at] = kept[--retained];
			if (s % 4 == 1)
				p = atomic_exchange(&shared[(s >> 40) % SHARED], p);
			drop(h, p);
		}
	}
	for (long i = 0; i < retained; i++)
		drop(h, kept[i]);
	free(kept);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct hand hands[MAX_THREADS];
	uint64_t sum = 0;
	begin(argc, argv);
	for (int i = 0; i < threads; i++)
		hands[i].random = seed((uint64_t)i);
	for (int g = 0; g < GENERATIONS; g++) {
		crew(threads, work, hands, sizeof *hands);
		for (int i = g % 2; i < SHARED; i += 2)
			sum += unpack(atomic_exchange(&shared[i], NULL));
	}
	for (int i = 0; i < threads; i++)
		sum += hands[i].sum;
	for (int i = 0; i < SHARED; i++)
		sum += unpack(atomic_exchange(&shared[i], NULL));
	steady();
	return finish(sum);
}
