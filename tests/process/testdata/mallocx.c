// The functions that jemalloc adds to malloc's, as jemalloc's manual has them. The program is built
// without jemalloc, and with it: then JEMALLOC is defined, and the blocks are of an arena and a
// thread cache of their own, as those of redis for Lua.
#include "common.h"
#include <malloc.h>

void *mallocx(size_t n, int flags);
void *rallocx(void *p, size_t n, int flags);
size_t xallocx(void *p, size_t n, size_t extra, int flags);
size_t sallocx(const void *p, int flags);
void dallocx(void *p, int flags);
void sdallocx(void *p, size_t n, int flags);
size_t nallocx(size_t n, int flags);
#ifdef JEMALLOC
int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length);
#else
#	pragma weak mallocx
#	pragma weak rallocx
#	pragma weak xallocx
#	pragma weak sallocx
#	pragma weak dallocx
#	pragma weak sdallocx
#	pragma weak nallocx
#endif

enum { ZERO = 0x40 };

static int place; // the bits of the flags for the arena and the thread cache

static void own_arena(void)
{
#ifdef JEMALLOC
	unsigned arena, cache;
	size_t n = sizeof arena;
	CHECK(mallctl("arenas.create", &arena, &n, NULL, 0) == 0);
	CHECK(mallctl("tcache.create", &cache, &n, NULL, 0) == 0);
	place = (int)(arena + 1) << 20 | (int)(cache + 2) << 8;
#endif
}

static const size_t sizes[] = {1, 15, 16, 17, 100, 128, 129, 1000, 1024, 1025, 5000, 16000, 16385,
	70000, 300000, MIB, 4 * MIB, 4 * MIB + 1, 5 * MIB + 100, 9 * MIB - 1, 9 * MIB};

static int all(const char *p, int value, size_t n)
{
	return n == 0 || (p[0] == (char)value && memcmp(p, p + 1, n - 1) == 0);
}

// Leaves garbage where the next blocks of the size will be; one is enough of those that have
// memory of their own.
static void soil(size_t n, int flags)
{
	void *p[4];
	int blocks = n < MIB ? 4 : 1;
	for (int i = 0; i < blocks; i++)
		memset(p[i] = mallocx(n, flags), 0xee, n);
	for (int i = 0; i < blocks; i++)
		dallocx(p[i], flags);
}

// The real size is what nallocx has said, and all of it can be used. A large block may be one that
// was freed before, which is larger by at most a quarter.
static void real_size(void)
{
	for (int lg = 0; lg <= 21; lg++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			size_t n = sizes[i], said = nallocx(n, lg | place);
			char *p = mallocx(n, lg | place);
			size_t real = sallocx(p, place), most = n > 4 * MIB ? said + said / 4 : said;
			CHECK(p != NULL && (uintptr_t)p % (1ul << lg) == 0, "%zu at %p", n, p);
			CHECK(said >= n && real >= said && real <= most && malloc_usable_size(p) == real,
				"%zu, alignment %d: nallocx %zu, sallocx %zu", n, lg, said, real);
			CHECK(xallocx(p, n, 0, lg | place) >= n);
			if (lg == 0)
				memset(p, 1, real);
			p[0] = p[real - 1] = 1;
			sdallocx(p, i % 2 ? n : real, lg | place);
		}
	CHECK(nallocx(SIZE_MAX / 2, 0) == 0 && mallocx(hide((void *)(SIZE_MAX / 2)) - NULL, 0) == NULL);
}

// With ZERO the whole real size is clear, and what a block grows by.
static void clear(void)
{
	for (int lg = 0; lg <= 12; lg += 6)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			if (lg == 6 && sizes[i] >= MIB)
				continue; // it is aligned to more in any case
			size_t n = sizes[i], more = n + n / 3 + 1;
			int flags = lg | ZERO | place;
			soil(n, lg | place), soil(more, lg | place);
			char *p = mallocx(n, flags);
			size_t real = sallocx(p, place);
			CHECK(all(p, 0, real), "mallocx of %zu", n);
			memset(p, 7, n);
			p = rallocx(p, more, flags);
			CHECK((uintptr_t)p % (1ul << lg) == 0);
			CHECK(all(p, 7, n) && all(p + n, 0, sallocx(p, place) - n), "rallocx of %zu", n);
			p = rallocx(p, n, lg | place);
			CHECK((uintptr_t)p % (1ul << lg) == 0 && all(p, 7, n));
			dallocx(p, place);
		}
}

// Blocks of these functions and of malloc are of one kind.
static void mixed(void)
{
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t n = sizes[i];
		char *p = mallocx(n, place), *q = malloc(n), *r = mallocx(n, place), *s = calloc(1, n);
		memset(p, 3, n), memset(q, 4, n);
		p = realloc(p, 2 * n), q = rallocx(q, 2 * n, 0);
		CHECK(all(p, 3, n) && all(q, 4, n), "%zu", n);
		CHECK(sallocx(s, 0) == malloc_usable_size(s), "%zu", n);
		free(p), dallocx(q, 0), free(r), sdallocx(s, n, 0);
	}
}

static void misuse(void)
{
	char *p = mallocx(100, 0);
	dallocx(p, 0);
	dallocx(p, 0);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"real size", real_size}, {"clear", clear}, {"mixed", mixed}, {"misuse", misuse}};
	own_arena();
	RUN(tests);
}
