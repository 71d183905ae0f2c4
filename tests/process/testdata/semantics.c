// What glibc's manual promises of each function, at the borders.
#include "common.h"
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void align(void)
{
	for (size_t n = 0; n < 70000; n += n < 3000 ? 1 : 777) {
		void *p = malloc(n), *c = calloc(1, n), *r = realloc(NULL, n),
			 *g = realloc(malloc(8), n + 1);
		CHECK(((uintptr_t)p | (uintptr_t)c | (uintptr_t)r | (uintptr_t)g) % 16 == 0,
			"size %zu: %p %p %p %p", n, p, c, r, g);
		CHECK(p && c && r && g);
		free(p), free(c), free(r), free(g);
	}
	for (size_t n = 100000; n < 100 * MIB; n = n * 3 / 2) {
		void *p = malloc(n);
		CHECK(p != NULL && (uintptr_t)p % 16 == 0, "size %zu", n);
		free(p);
	}
}

#define FAILS(call) \
	do { \
		errno = 0; \
		void *q_ = hide(call); \
		CHECK(q_ == NULL && errno == ENOMEM, "%p, errno %d", q_, errno); \
	} while (0)

static void limits(void)
{
	static const size_t big[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 15,
		SIZE_MAX - 4095, SIZE_MAX - 4096, SIZE_MAX - 65535, SIZE_MAX - 65536, SIZE_MAX / 2 + 4096,
		PTRDIFF_MAX, PTRDIFF_MAX - 65536};
	char *keep = malloc(100), *large = malloc(6 * MIB);
	strcpy(keep, "kept"), strcpy(large, "kept");
	for (unsigned i = 0; i < sizeof big / sizeof *big; i++) {
		size_t n = big[i];
		FAILS(malloc(n));
		FAILS(calloc(1, n));
		FAILS(calloc(n, 1));
		FAILS(realloc(NULL, n));
		FAILS(realloc(keep, n));
		FAILS(realloc(large, n));
		FAILS(reallocarray(keep, 1, n));
		FAILS(valloc(n));
		FAILS(pvalloc(n));
		for (size_t a = 8; a <= 1 << 30; a <<= 3) {
			FAILS(memalign(a, n));
			FAILS(aligned_alloc(a, n));
			void *p = (void *)1;
			CHECK(posix_memalign(&p, a, n) == ENOMEM && p == (void *)1);
		}
	}
	FAILS(calloc(SIZE_MAX / 2, 3));
	FAILS(calloc((size_t)1 << 32, (size_t)1 << 32));
	FAILS(reallocarray(keep, (size_t)1 << 33, (size_t)1 << 32));
	FAILS(reallocarray(NULL, SIZE_MAX, 2));
	CHECK(strcmp(keep, "kept") == 0 && strcmp(large, "kept") == 0);
	free(keep), free(large);
}

static void zero(void)
{
	void *p[200];
	for (int i = 0; i < 200; i++) {
		p[i] = i % 4 == 0 ? malloc(0) :
			i % 4 == 1    ? calloc(0, 7) :
			i % 4 == 2    ? realloc(NULL, 0) :
							memalign(32, 0);
		CHECK(p[i] != NULL);
		for (int j = 0; j < i; j++)
			CHECK(p[i] != p[j]);
	}
	for (int i = 0; i < 200; i++) {
		errno = 77;
		CHECK(realloc(hide(p[i]), 0) == NULL && errno == 77);
	}
	// Freed indeed: a heap that lost each block would pass this only by growing.
	for (int i = 0; i < 3000; i++) {
		char *q = malloc(MIB);
		memset(q, 1, MIB);
		CHECK((i & 1 ? realloc(q, 0) : reallocarray(q, 0, 5)) == NULL);
	}
	CHECK(rss() < (long)(64 * MIB), "%ld", rss());
}

// The smallest block may be written, for there are programs that do so with one of 0 bytes.
static void smallest(void)
{
	static char *p[1000];
	for (int i = 0; i < 1000; i++) {
		p[i] = i % 3 == 0 ? malloc(0) : i % 3 == 1 ? calloc(15, 0) : memalign(16, 0);
		CHECK(p[i] && malloc_usable_size(hide(p[i])) == 16);
		memset(hide(p[i]), i, 16);
	}
	for (int i = 0; i < 1000; i++)
		for (int k = 0; k < 16; k++)
			CHECK(p[i][k] == (char)i, "%d %d", i, k);
	for (int i = 0; i < 1000; i++)
		free(p[i]);
}

// With TA_SECURE=1 a block of 0 bytes can neither be read nor written, nor grow without a copy, and
// each of many is another.
static void empty(void)
{
	enum { MANY = 300000 };
	static char *p[MANY];
	for (int i = 0; i < MANY; i++) {
		p[i] = malloc(0);
		CHECK(p[i] && (uintptr_t)p[i] % 16 == 0 && (i == 0 || p[i] != p[i - 1]));
	}
	for (int write = 0; write < 2; write++) {
		pid_t pid = fork();
		if (pid == 0) {
			volatile char *q = p[MANY / 2];
			if (write)
				*q = 1;
			_exit(*q);
		}
		int status;
		CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
			"%#x", status);
	}
	CHECK(rss() < (long)(20 * MIB), "%ld", rss());
	for (int i = 0; i < MANY; i++) {
		if (i % 3 == 0) {
			char *q = realloc(p[i], 5);
			CHECK(q && q != p[i]);
			memset(q, 1, 5);
			free(q);
		} else
			free(p[i]);
	}
}

static void posix(void)
{
	static const size_t bad[] = {
		0, 1, 2, 3, 4, 7, 9, 12, 24, 48, 100, 1000, SIZE_MAX, ((size_t)1 << 63) + 8};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		void *p = (void *)0x1234;
		errno = 55;
		CHECK(posix_memalign(&p, bad[i], 10) == EINVAL && p == (void *)0x1234 && errno == 55, "%zu",
			bad[i]);
	}
	void *p = (void *)0x1234;
	errno = 55;
	CHECK(
		posix_memalign(&p, 64, SIZE_MAX - 100) == ENOMEM && p == (void *)0x1234 && errno == ENOMEM);
	errno = 55;
	CHECK(
		posix_memalign(&p, (size_t)1 << 62, 1) == ENOMEM && p == (void *)0x1234 && errno == ENOMEM);
	errno = 55;
	CHECK(posix_memalign(&p, 8, 0) == 0 && p != (void *)0x1234 && errno == 55);
	free(p);
}

static void aligned(void)
{
	for (size_t a = 1; a <= 1ul << 30; a <<= 1)
		for (int k = 0; k < 5; k++) {
			size_t n = (size_t[]){0, 1, 100, a, a + a / 2 + 1}[k];
			unsigned char *p = memalign(a, n), *q = aligned_alloc(a, n);
			CHECK(p && q && p != q, "align %zu, size %zu", a, n);
			CHECK(((uintptr_t)p | (uintptr_t)q) % a == 0 && ((uintptr_t)p | (uintptr_t)q) % 16 == 0,
				"align %zu: %p %p", a, p, q);
			CHECK(malloc_usable_size(p) >= n && malloc_usable_size(q) >= n);
			if (n > 0)
				p[0] = p[n - 1] = q[0] = q[n - 1] = 1;
			p = realloc(p, n + 1000);
			CHECK(p && (n == 0 || (p[0] == 1 && p[n - 1] == 1)));
			free(p), free(q);
		}
	for (size_t n = 0; n < 20000; n += 500) {
		void *v = valloc(n), *p = pvalloc(n);
		CHECK(v && p && ((uintptr_t)v | (uintptr_t)p) % 4096 == 0);
		CHECK(malloc_usable_size(p) >= (n + 4095) / 4096 * 4096);
		free(v), free(p);
	}
}

// Blocks aligned at huge pages that end at most an eighth before one's end are mapped up to there.
static void advised(void)
{
	enum { HUGE = 2 << 20 };
	static const size_t sizes[] = {
		HUGE, HUGE - 1, 1835008, 1900000, 2 * HUGE - 200000, 4 * HUGE - 65537, 30 * HUGE - 262144};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int k = 0; k < 3; k++) {
			size_t n = sizes[i], whole = (n + HUGE - 1) / HUGE * HUGE;
			char *p = memalign(HUGE, n);
			CHECK(p && madvise(p, whole, MADV_NORMAL) == 0, "%zu: %s", n, strerror(errno));
			CHECK(malloc_usable_size(p) >= n);
			memset(p, 1, n);
			if (k > 0)
				free(p);
		}
}

static void keeps_errno(void)
{
	for (size_t n = 1; n < 100 * MIB; n = n * 2 + 1) {
		void *p[40];
		int many = n < MIB ? 40 : 2;
		for (int i = 0; i < many; i++)
			p[i] = malloc(n);
		for (int i = 0; i < many; i++) {
			errno = 123;
			free(p[i]);
			CHECK(errno == 123, "%zu", n);
		}
	}
	errno = 123;
	free(NULL);
	CHECK(errno == 123);
}

static void usable(void)
{
	CHECK(malloc_usable_size(NULL) == 0);
	for (size_t n = 0; n < 20 * MIB; n = n < 300 ? n + 1 : n * 5 / 4) {
		unsigned char *p = malloc(n), *next = malloc(n);
		CHECK(p && next);
		size_t u = malloc_usable_size(p), un = malloc_usable_size(next);
		CHECK(u >= n && (n < 64 || u <= n + n / 4 + 65536));
		memset(next, 7, un);
		memset(p, 9, u);
		for (size_t i = 0; i<un; i += un> 4096 ? 997 : 1)
			CHECK(next[i] == 7, "size %zu", n);
		CHECK(p[u - 1] == 9 && malloc_usable_size(p) == u);
		free(p), free(next);
	}
}

static const struct test tests[] = {{"align", align}, {"limits", limits}, {"zero", zero},
	{"smallest", smallest}, {"empty", empty}, {"posix", posix}, {"aligned", aligned},
	{"advised", advised}, {"errno", keeps_errno}, {"usable", usable}};

int main(int argc, char **argv) { RUN(tests); }
