// A library that stands in for malloc, passes every call on, and asks how large each block is, as
// profilers do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

#define NEXT(name) \
	static __typeof__(name) *next; \
	if (next == NULL) \
	next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static void *sized(void *p, size_t n)
{
	if (p != NULL && malloc_usable_size(p) < n)
		abort();
	return p;
}

void *malloc(size_t n)
{
	NEXT(malloc);
	return sized(next(n), n);
}

void *calloc(size_t a, size_t b)
{
	NEXT(calloc);
	return sized(next(a, b), a * b);
}

void *realloc(void *p, size_t n)
{
	NEXT(realloc);
	return sized(next(p, n), n);
}

void free(void *p)
{
	NEXT(free);
	next(p);
}
