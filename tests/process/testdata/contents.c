// What blocks hold: zeros from calloc, the old bytes after realloc.
#include "common.h"

static size_t bad_byte(const unsigned char *p, size_t n)
{
	static const unsigned char zeros[65536];
	for (size_t i = 0; i < n; i += sizeof zeros) {
		size_t m = n - i < sizeof zeros ? n - i : sizeof zeros;
		if (memcmp(p + i, zeros, m) != 0)
			return i;
	}
	return n;
}

// Sizes up to 8 MiB: every one at first, then both sides of each class border.
static size_t next_size(size_t n)
{
	if (n < 1100)
		return n + 1;
	size_t step = 1ul << (60 - __builtin_clzl(n)); // an eighth of n's power of two
	size_t m = n & (step - 1);
	return m == 0 ? n + 1 : m == 1 ? n - 1 + step / 2 : (n & ~(step - 1)) + step;
}

// Dirties memory of every size, frees it, and gets it again with calloc.
static void calloc_reused(void)
{
	for (size_t n = 1; n <= 8 * MIB + 1; n = next_size(n)) {
		enum { MOST = 3 };
		void *p[MOST];
		int K = n < MIB ? MOST : 1;
		for (int round = 0; round < 2; round++) {
			for (int i = 0; i < K; i++) {
				p[i] = malloc(n);
				CHECK(p[i] != NULL);
				memset(p[i], 0xa5, n);
			}
			for (int i = 0; i < K; i++)
				free(p[i]);
			for (int i = 0; i < K; i++) {
				p[i] = i & 1 ? calloc(n, 1) : calloc(1, n);
				CHECK(p[i] != NULL);
				size_t at = bad_byte(p[i], n);
				CHECK(at == n, "size %zu, near byte %zu", n, at);
				memset(p[i], 0x5a, n);
			}
			for (int i = 0; i < K; i++)
				free(p[i]);
		}
	}
}

// calloc over spans that were dirty in another class, some purged, some not.
static void calloc_mixed(void)
{
	static unsigned char *p[256];
	static size_t size[256];
	unsigned long x = 88172645463325252ul;
	for (int i = 0; i < 30000; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		int k = x % 256;
		free(p[k]);
		size_t n = (x >> 8) % (1ul << (4 + (x >> 40) % 17));
		p[k] = x >> 63 ? calloc(1, n) : malloc(n);
		CHECK(p[k] != NULL);
		if (x >> 63)
			CHECK(bad_byte(p[k], n) == n, "size %zu", n);
		memset(p[k], 0xff, n);
		size[k] = n;
		if (i % 5000 == 4999)
			usleep(60000); // past the purge delay that the test sets
	}
	for (int k = 0; k < 256; k++)
		CHECK(p[k] == NULL || size[k] == 0 || p[k][size[k] - 1] == 0xff);
}

static void fill(unsigned char *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i += i < 256 || i + 256 >= to ? 1 : 61)
		p[i] = (unsigned char)(i * 31 >> 3 ^ i);
}

static void same(const unsigned char *p, size_t n, size_t filled, const char *what, size_t size)
{
	for (size_t i = 0; i < n; i += i < 256 || i + 256 >= filled ? 1 : 61)
		CHECK(p[i] == (unsigned char)(i * 31 >> 3 ^ i), "%s to %zu, byte %zu", what, size, i);
}

static void step(unsigned char **p, size_t *have, size_t n)
{
	fill(*p, 0, *have);
	unsigned char *q = realloc(*p, n);
	CHECK(q != NULL && (uintptr_t)q % 16 == 0);
	same(q, *have < n ? *have : n, *have, *have < n ? "growing" : "shrinking", n);
	*p = q, *have = n;
}

// Up and down over the borders of every class and into and out of huge blocks.
static void realloc_borders(void)
{
	size_t have = 1;
	unsigned char *p = malloc(1), *wall;
	for (size_t n = 2; n < 40 * MIB; n = n * 9 / 8 + 1) {
		step(&p, &have, n);
		if (n % 3 == 0)
			wall = malloc(n), free(wall);
	}
	for (size_t n = have; n > 1; n = n * 7 / 8)
		step(&p, &have, n);
	static const size_t jumps[] = {256 << 10, 257 << 10, 300 << 10, 4 << 20, (4 << 20) + 1,
		255 << 10, 5 << 20, 4 << 20, 64 << 20, 65 << 20, 100, 12 << 20, 3 << 20, 48 << 20, 6 << 20,
		16, 262144, 262145, 4194304, 4194305, 8388608, 1};
	for (unsigned i = 0; i < sizeof jumps / sizeof *jumps; i++)
		step(&p, &have, jumps[i]);
	free(p);
}

// Blocks of the alignment functions keep their bytes, too.
static void realloc_aligned(void)
{
	for (size_t a = 32; a <= 4 * MIB; a *= 4)
		for (size_t n = 10; n < 10 * MIB; n = n * 5) {
			size_t have = n;
			unsigned char *p = aligned_alloc(a, n);
			CHECK(p != NULL);
			step(&p, &have, n * 3);
			step(&p, &have, n / 2 + 1);
			free(p);
		}
}

// Bytes that look like the heap's own marks are bytes like all others.
static void own_marks(void)
{
	enum { N = 3000 };
	static uint64_t *p[N];
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			size_t n = 16 << i % 7;
			p[i] = malloc(n);
			for (size_t k = 0; k < n / 8; k++)
				p[i][k] = 0xf4eeb10c5a1ed0b5u;
		}
		for (int i = 0; i < N; i += 2)
			p[i] = realloc(p[i], 24 << i % 7);
		for (int i = 0; i < N; i++) {
			CHECK(p[i][1] == 0xf4eeb10c5a1ed0b5u);
			free(p[i]);
		}
	}
}

static const struct test tests[] = {{"calloc reused", calloc_reused},
	{"calloc mixed", calloc_mixed}, {"realloc borders", realloc_borders},
	{"realloc aligned", realloc_aligned}, {"own marks", own_marks}};

int main(int argc, char **argv) { RUN(tests); }
