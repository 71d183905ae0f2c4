// A program that names no function of the driver but those that the library has as well: linked
// with the library before the driver, it needs the library alone.
#include <stdio.h>
#include <string.h>
#include "cuda_abi.h"

#define DECLARE(name, ...) CUresult name(__VA_ARGS__);
TA_CUDA_HOOKED(DECLARE)

static int init(void) { return cuInit(0); }

// Asks the resolver first, which works before cuInit.
static int resolver(void)
{
	CUresult (*start)(unsigned) = NULL;
	int status;
	CUresult e = cuGetProcAddress_v2("cuInit", (void **)&start, 13000, 0, &status);
	return e == CUDA_SUCCESS && start != NULL ? start(0) : e;
}

static int old_resolver(void)
{
	CUresult (*start)(unsigned) = NULL;
	CUresult e = cuGetProcAddress("cuInit", (void **)&start, 11030, 0);
	return e == CUDA_SUCCESS && start != NULL ? start(0) : e;
}

int main(int argc, char **argv)
{
	CUcontext context;
	CUdeviceptr p = 0;
	size_t total = 0;
	int e = argc < 2 || strcmp(argv[1], "init") == 0 ? init() :
		strcmp(argv[1], "old") == 0                  ? old_resolver() :
													   resolver();
	printf("start %d\n", e);
	if (e != CUDA_SUCCESS)
		return 0;
	printf("context %d\n", cuDevicePrimaryCtxRetain(&context, 0));
	printf("total %d\n", cuDeviceTotalMem_v2(&total, 0));
	printf("memory %d\n", total != 0);
	cuCtxCreate_v2(&context, 0, 0);
	printf("alloc %d\n", cuMemAlloc_v2(&p, 4711));
	printf("block %d\n", p != 0);
	printf("free %d\n", cuMemFree_v2(p));
	return 0;
}
