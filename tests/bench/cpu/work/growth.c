// Buffers that grow by realloc: hundreds in turn by doubling, a few in turn by 64 KB, one by
// 64 KB and one by doubling to sizes where copying is what it costs. What was written before
// must be there after.
#include "work.h"

#define MANY 256
#define FEW  8
#define STEP (64ul << 10)

// Makes the block n bytes long; its old end must be intact.
static void grow(struct block *b, size_t n)
{
	if (b->n >= 16 && read_word(b->p + b->n - 8) != ~b->key)
		corrupt(b->p, b->n, b->n - 8);
	b->p = realloc(b->p, n);
	if (b->p == NULL)
		die("realloc");
	for (size_t at = (b->n + PAGE - 1) / PAGE * PAGE; at + 16 <= n; at += PAGE)
		write_word(b->p + at, b->key + at);
	if (b->n >= 16) // the old end may be where a page's word belongs
		stamp(b->p + (b->n - 8) / PAGE * PAGE, 8, b->key + (b->n - 8) / PAGE * PAGE);
	write_word(b->p + n - 8, ~b->key);
	b->n = n;
}

// Grows n buffers in turn, to the size most, by steps or (step 0) by doubling.
static uint64_t grow_all(int n, size_t most, size_t step, uint64_t *random)
{
	struct block b[MANY];
	uint64_t sum = 0;
	for (int i = 0; i < n; i++)
		b[i] = (struct block){NULL, 0, next(random)};
	for (size_t size = step != 0 ? step : 16; size <= most;
		 size = step != 0 ? size + step : size * 2)
		for (int i = 0; i < n; i++)
			grow(&b[i], size);
	for (int i = 0; i < n; i++)
		sum += put(&b[i]);
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0, random = seed(0);
	begin(argc, argv);
	long rounds = scaled(27);
	for (long i = 0; i < rounds; i++) {
		sum += grow_all(MANY, 64 << 10, 0, &random);
		if (i % 3 != 0)
			continue;
		sum += grow_all(FEW, 2 << 20, STEP, &random);
		sum += grow_all(1, 12 << 20, STEP, &random);
		sum += grow_all(1, 64 << 20, 0, &random);
	}
	return finish(sum);
}
