// A program that would use CUDA if there were any.
#include "common.h"

static void try(void)
{
	CUdeviceptr p = 0;
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
	printf("driver: %d\n", lib != NULL);
	void *scope = lib != NULL ? lib : RTLD_DEFAULT;
	CUresult (*alloc)(CUdeviceptr *, size_t) = (CUresult(*)(CUdeviceptr *, size_t))dlsym(
		scope, "cuMemAlloc_v2");
	CUresult (*release)(CUdeviceptr) = (CUresult(*)(CUdeviceptr))dlsym(scope, "cuMemFree_v2");
	printf("functions: %d %d\n", alloc != NULL, release != NULL);
	if (alloc != NULL)
		SHOW(alloc(&p, 4711));
	printf("%jd\n", (intmax_t)p);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {{"try", try}};
	RUN(tests);
}
