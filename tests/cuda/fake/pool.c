// Stream-ordered memory: the pools of devices, and nodes of graphs.
#include "memory.h"

// The pools of a device: its default one, which is its first current one, and one more.
struct CUmemPool_st {
	CUdevice device;
	uint64_t high[2]; // of reserved and used bytes; the pool keeps nothing that is free
};
static struct CUmemPool_st pools[2 * DEVICES];
static CUmemoryPool current_pools[DEVICES];

static CUmemoryPool default_pool(CUdevice d)
{
	pools[d].device = pools[DEVICES + d].device = d;
	return &pools[d];
}

static CUmemoryPool current_pool(CUdevice d)
{
	return current_pools[d] != NULL ? current_pools[d] : default_pool(d);
}

API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice d)
{
	CALL(cuDeviceGetDefaultMemPool, INIT);
	if (d < 0 || d >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = default_pool(d);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice d)
{
	CALL(cuDeviceGetMemPool, INIT);
	if (d < 0 || d >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = current_pool(d);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceSetMemPool(CUdevice d, CUmemoryPool pool)
{
	CALL(cuDeviceSetMemPool, INIT);
	if (d < 0 || d >= DEVICES || pool == NULL || pool->device != d)
		return CUDA_ERROR_INVALID_VALUE;
	current_pools[d] = pool;
	return CUDA_SUCCESS;
}

API CUresult cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool)
{
	CALL(cuMemSetMemPool, INIT);
	if (location == NULL || location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != 1 ||
		pool == NULL || pool->device != location->id)
		return CUDA_ERROR_INVALID_VALUE;
	current_pools[pool->device] = pool;
	return CUDA_SUCCESS;
}

// The second pool of a device, which a program may have made.
API CUmemoryPool fake_pool(CUdevice d)
{
	default_pool(d);
	return &pools[DEVICES + d];
}

static uint64_t pool_bytes(CUmemoryPool pool) { return fake_async_bytes(pool->device); }

static void raise_pool(CUmemoryPool pool)
{
	uint64_t n = pool_bytes(pool);
	for (int i = 0; i < 2; i++)
		if (n > pool->high[i])
			pool->high[i] = n;
}

API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	CALL(cuMemPoolTrimTo, INIT);
	return pool == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	CALL(cuMemPoolGetAttribute, INIT);
	if (pool == NULL || value == NULL || attribute < 1 || attribute > 8)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == 5 || attribute == 7)
		*(uint64_t *)value = pool_bytes(pool);
	else if (attribute >= 6)
		*(uint64_t *)value = pool->high[attribute == 8];
	else if (attribute == 4)
		*(uint64_t *)value = 0;
	else
		*(int *)value = 1;
	return CUDA_SUCCESS;
}

API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	CALL(cuMemPoolSetAttribute, INIT);
	if (pool == NULL || value == NULL || attribute < 1 || attribute > 8 || attribute == 5 ||
		attribute == 7)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == 6 || attribute == 8) {
		if (*(uint64_t *)value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->high[attribute == 8] = pool_bytes(pool);
	}
	return CUDA_SUCCESS;
}

API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *to, size_t n)
{
	CALL(cuMemPoolSetAccess, INIT);
	for (size_t i = 0; i < n; i++)
		if (to[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || to[i].location.id < 0 ||
			to[i].location.id >= DEVICES)
			return CUDA_ERROR_INVALID_VALUE;
	return pool == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// A stream that captures a graph gets an address of the graph's, which is no memory yet; it frees
// no other.
static CUresult allocate_async(CUdeviceptr *out, size_t n, CUstream s)
{
	static CUdeviceptr nodes = 1ul << 40; // no memory of the host is there
	if (s == NULL)
		return INVALID_HANDLE;
	if (s->capture && out != NULL && n != 0) {
		*out = nodes += 2ul << 20;
		return CUDA_SUCCESS;
	}
	CUresult e = fake_allocate_async(out, n);
	raise_pool(default_pool(fake_current()->device));
	return e;
}

#define ASYNCS(suffix, per_thread) \
	API CUresult cuMemAllocAsync##suffix(CUdeviceptr *out, size_t n, CUstream s) \
	{ \
		CALL(cuMemAllocAsync##suffix, CONTEXT); \
		return allocate_async(out, n, fake_stream(s, per_thread)); \
	} \
	API CUresult cuMemAllocFromPoolAsync##suffix( \
		CUdeviceptr *out, size_t n, CUmemoryPool pool, CUstream s) \
	{ \
		CALL(cuMemAllocFromPoolAsync##suffix, CONTEXT); \
		return pool == NULL ? INVALID_HANDLE : allocate_async(out, n, fake_stream(s, per_thread)); \
	} \
	API CUresult cuMemFreeAsync##suffix(CUdeviceptr p, CUstream handle) \
	{ \
		CALL(cuMemFreeAsync##suffix, CONTEXT); \
		struct memory *m = fake_find(p); \
		CUstream s = fake_stream(handle, per_thread); \
		if (s != NULL && s->capture && p >> 40 == 1 && m == NULL) \
			return CUDA_SUCCESS; \
		if (s != NULL && s->capture) \
			return CUDA_ERROR_INVALID_VALUE; \
		if (m == NULL || m->address != p || s == NULL) \
			return CUDA_ERROR_INVALID_VALUE; \
		fake_queue(s, FREE)->address = p; \
		return CUDA_SUCCESS; \
	}
ASYNCS(, 0)
ASYNCS(_ptsz, 1)
