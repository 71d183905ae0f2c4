// Page-locked host memory.
#include "fake.h"

static struct pinned {
	struct pinned *next;
	void *address;
	size_t bytes;
} * all;

int fake_pinned(CUdeviceptr p, size_t n)
{
	for (struct pinned *i = all; i != NULL; i = i->next)
		if (p >= (CUdeviceptr)i->address && p + n <= (CUdeviceptr)i->address + i->bytes)
			return 1;
	return 0;
}

API CUresult cuMemHostAlloc(void **out, size_t n, unsigned flags)
{
	CALL(cuMemHostAlloc, CONTEXT);
	if (n == 0 || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	struct pinned *p = malloc(sizeof *p);
	void *address = NULL;
	if (p == NULL || posix_memalign(&address, 4096, n) != 0) {
		free(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*p = (struct pinned){all, address, n};
	all = p;
	*out = address;
	return CUDA_SUCCESS;
}

API CUresult cuMemFreeHost(void *address)
{
	CALL(cuMemFreeHost, CONTEXT);
	struct pinned **at = &all;
	while (*at != NULL && (*at)->address != address)
		at = &(*at)->next;
	struct pinned *p = *at;
	if (p == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_pending((CUdeviceptr)address, p->bytes, NULL))
		return fake_illegal(ILLEGAL_STATE, "cuMemFreeHost of memory that is being written");
	*at = p->next;
	memset(address, 0xdb, p->bytes);
	free(address);
	free(p);
	return CUDA_SUCCESS;
}

API CUresult cuMemHostRegister_v2(void *address, size_t n, unsigned flags)
{
	CALL(cuMemHostRegister_v2, CONTEXT);
	if (n == 0 || flags > 15 || fake_pinned((CUdeviceptr)address, 1))
		return CUDA_ERROR_INVALID_VALUE;
	struct pinned *p = malloc(sizeof *p);
	*p = (struct pinned){all, address, n};
	all = p;
	return CUDA_SUCCESS;
}

API CUresult cuMemHostUnregister(void *address)
{
	CALL(cuMemHostUnregister, CONTEXT);
	struct pinned **at = &all;
	while (*at != NULL && (*at)->address != address)
		at = &(*at)->next;
	struct pinned *p = *at;
	if (p == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*at = p->next;
	free(p);
	return CUDA_SUCCESS;
}
