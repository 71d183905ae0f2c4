// Another interposer, of the runtime's functions: it looks for what comes after it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int cudaMalloc(void **out, size_t n)
{
	int (*volatile next)(void **, size_t) = (int (*)(void **, size_t))dlsym(
		RTLD_NEXT, "cudaMalloc");
	return next != 0 ? next(out, n) : 3;
}

int cudaFree(void *p)
{
	int (*volatile next)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "cudaFree");
	return next != 0 ? next(p) : 3;
}
