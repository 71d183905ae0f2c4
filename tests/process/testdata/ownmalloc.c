// A program that brings its own malloc, as those that link an allocator in do. Nothing of the
// library's may serve it, the two must not mix, and no thread but the program's calls it. With an
// argument it lives for a while.
#include "common.h"
#include <dlfcn.h>
#include <malloc.h>

static char arena[64 * 1024 * 1024] __attribute__((aligned(4096)));
static size_t used;
static int made;

static void by_program(void)
{
	if (gettid() != getpid())
		write(1, "another thread\n", 15), _exit(9);
}

void *memalign(size_t a, size_t n)
{
	by_program();
	size_t at = (__atomic_fetch_add(&used, n + a + 16, __ATOMIC_SEQ_CST) + 16 + a - 1) & ~(a - 1);
	if (at + n > sizeof arena)
		return NULL;
	((size_t *)(arena + at))[-1] = n;
	made++;
	return arena + at;
}
void *malloc(size_t n) { return memalign(16, n); }
void free(void *p)
{
	by_program();
	if (p != NULL && ((char *)p < arena || (char *)p >= arena + sizeof arena))
		write(1, "foreign block\n", 14), _exit(9);
}
void *calloc(size_t a, size_t b) { return malloc(a * b); }
size_t malloc_usable_size(void *p) { return p == NULL ? 0 : ((size_t *)p)[-1]; }
void *realloc(void *p, size_t n)
{
	void *q = malloc(n);
	return p == NULL ? q : memcpy(q, p, malloc_usable_size(p) < n ? malloc_usable_size(p) : n);
}
void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { return *p = memalign(a, n), 0; }

// It wraps other functions, too, as a sanitizer does: they go on to the next library, which must
// not come back.
static void once(int entered)
{
	if (entered != 0)
		write(1, "came back\n", 10), _exit(9);
}

#define WRAP(result, name, args, ...) \
	result name args \
	{ \
		static int within; \
		once(within++); \
		result(*next) args = (result(*) args)dlsym(RTLD_NEXT, #name); \
		result r = next(__VA_ARGS__); \
		within--; \
		return r; \
	}
WRAP(int, prctl, (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d),
	option, a, b, c, d)
WRAP(int, pthread_setname_np, (unsigned long thread, const char *name), thread, name)
WRAP(int, dlclose, (void *lib), lib)
WRAP(void *, dlopen, (const char *path, int flags), path, flags)
void _exit(int status)
{
	static int within;
	if (within++ == 0)
		((void (*)(int))dlsym(RTLD_NEXT, "_exit"))(status);
	abort();
}

extern unsigned long pthread_self(void);

int main(int argc, char **argv)
{
	if (argc > 1)
		usleep(600000);
	CHECK(prctl(15, (unsigned long)"name", 0, 0, 0) == 0 &&
		pthread_setname_np(pthread_self(), "name") == 0);
	CHECK(dlclose(dlopen("libm.so.6", 2)) == 0 && dlclose(dlopen("libm.so.6", 2 | 8)) == 0);
	int before = made;
	char *line = NULL;
	CHECK(asprintf(&line, "%d", 5) == 1 && line > arena && line < arena + sizeof arena &&
		made > before);
	free(line);
	FILE *f = fopen("/dev/null", "r");
	fclose(f);
	void *(*ta_alloc)(size_t, int) = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "ta_alloc");
	void (*ta_free)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "ta_free");
	CHECK(ta_alloc != NULL);
	void *p = ta_alloc(100, 1);
	CHECK(p != NULL && ((char *)p < arena || (char *)p > arena + sizeof arena));
	ta_free(p);
	ta_free(strdup("the program's own"));
	puts("done");
	fflush(stdout);
	_exit(0);
}
