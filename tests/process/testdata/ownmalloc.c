// A program that brings its own malloc, as those that link an allocator in do.
// Nothing of the library's may serve it, and the two must not mix.
#include "common.h"
#include <dlfcn.h>
#include <malloc.h>

static char arena[64 * 1024 * 1024] __attribute__((aligned(4096)));
static size_t used;
static int made;

void *memalign(size_t a, size_t n)
{
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

int main(void)
{
	int before = made;
	char *line = NULL;
	CHECK(asprintf(&line, "%d", 5) == 1 && line > arena && line < arena + sizeof arena && made > before);
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
}
