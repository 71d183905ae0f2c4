// Stream-ordered memory: cuMemAllocAsync and its like, and the pools of the driver that it comes
// from. With TA_CUDA_ASYNC=heap the heap serves what would come from a device's default pool, in
// the order of streams as it serves ta_cuda_malloc. The driver serves the rest, charged to the
// caps.
#include <errno.h>
#include "cuda_driver.h"
#include "tieralloc.h"

CUresult cuCtxEnablePeerAccess(CUcontext to, unsigned flags); // cuda_context.c

// Both entry points of cuMemAllocAsync or of cuMemAllocFromPoolAsync.
struct async_call {
	CUdeviceptr *out;
	size_t n;
	CUmemoryPool pool;
	CUstream stream;
	CUresult (*plain)(CUdeviceptr *, size_t, CUstream);
	CUresult (*pooled)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
};

static CUresult call_async(ta_cuda_request *r, void *args)
{
	struct async_call *a = args;
	CUresult e = a->plain != NULL ? a->plain(a->out, a->n, a->stream) :
									a->pooled(a->out, a->n, a->pool, a->stream);
	if (e == CUDA_SUCCESS)
		r->Value = *a->out;
	return e;
}

// Set once the program has chosen a pool for a device. Until then the default pools are in use.
static int chosen;

static int device_of(CUcontext c, CUcontext current, CUdevice *out)
{
	CUcontext before;
	if (c == current)
		return ta_cu.cuCtxGetDevice(out) == CUDA_SUCCESS;
	if (ta_cu.cuCtxPushCurrent_v2(c) != CUDA_SUCCESS)
		return 0;
	CUresult e = ta_cu.cuCtxGetDevice(out);
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e == CUDA_SUCCESS;
}

static int is_default(CUmemoryPool pool, CUdevice d)
{
	CUmemoryPool of;
	return pool != NULL && ta_cu.cuDeviceGetDefaultMemPool != NULL &&
		ta_cu.cuDeviceGetDefaultMemPool(&of, d) == CUDA_SUCCESS && of == pool;
}

// Whether the call would take memory from the default pool of the device of context c.
static int from_default(const struct async_call *a, CUcontext c, CUcontext current)
{
	CUmemoryPool pool = a->pool;
	CUdevice d;
	if (a->plain != NULL && !__atomic_load_n(&chosen, __ATOMIC_ACQUIRE))
		return 1;
	if (!device_of(c, current, &d))
		return 0;
	if (a->plain != NULL &&
		(ta_cu.cuDeviceGetMemPool == NULL || ta_cu.cuDeviceGetMemPool(&pool, d) != CUDA_SUCCESS))
		return 0;
	return is_default(pool, d);
}

// The heap of context c serves the call.
static CUresult by_heap(
	struct async_call *a, CUstream stream, CUcontext c, CUcontext current, void *caller)
{
	ta_cuda_request r;
	ta_cuda_ask(&r, TA_CUDA_OP_STREAM_ALLOC, c);
	r.Stream = (uint64_t)stream;
	r.Bytes = a->n;
	ta_cuda_about(&r, caller);
	CUresult e = ta_cuda_serve(&r, current, call_async, a);
	if (e == CUDA_SUCCESS && r.Address != 0)
		*a->out = r.Address;
	return e;
}

// On a stream that captures a graph the call adds a node to the graph and allocates nothing yet.
static CUresult async(struct async_call *a, CUstream stream, void *caller)
{
	CUcontext current, of = NULL;
	ta_cuda_request none = {0};
	int capture = CU_STREAM_CAPTURE_STATUS_NONE;
	if (a->plain == NULL && a->pooled == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ta_cuda_serves(&current) || current == NULL || a->out == NULL)
		return call_async(&none, a);
	if (ta_flags.CudaAsync && a->n != 0 && !ta_cuda_captures(stream))
		of = ta_cuda_stream_context(stream, current);
	if (of != NULL && from_default(a, of, current))
		return by_heap(a, stream, of, current, caller);
	if (ta_cu.cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS ||
		capture != CU_STREAM_CAPTURE_STATUS_NONE)
		return call_async(&none, a);
	return ta_cuda_foreign(a->n, current, call_async, a);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t n, CUstream s)
{
	return async(
		&(struct async_call){out, n, NULL, s, TA_CUDA_REAL(cuMemAllocAsync), NULL}, s, CALLER);
}

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t n, CUstream s)
{
	return async(&(struct async_call){out, n, NULL, s, TA_CUDA_REAL(cuMemAllocAsync_ptsz), NULL},
		ta_cuda_per_thread(s), CALLER);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t n, CUmemoryPool pool, CUstream s)
{
	return async(&(struct async_call){out, n, pool, s, NULL, TA_CUDA_REAL(cuMemAllocFromPoolAsync)},
		s, CALLER);
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(
	CUdeviceptr *out, size_t n, CUmemoryPool pool, CUstream s)
{
	return async(
		&(struct async_call){out, n, pool, s, NULL, TA_CUDA_REAL(cuMemAllocFromPoolAsync_ptsz)},
		ta_cuda_per_thread(s), CALLER);
}

// The device whose default pool this is, or -1; -1 unless the heap serves default pools.
static CUdevice device_with(CUmemoryPool pool)
{
	CUmemoryPool of;
	if (!ta_flags.CudaAsync || pool == NULL || !ta_cuda_serves(NULL) ||
		ta_cu.cuDeviceGetDefaultMemPool == NULL)
		return -1;
	for (CUdevice d = 0; ta_cu.cuDeviceGetDefaultMemPool(&of, d) == CUDA_SUCCESS; d++)
		if (of == pool)
			return d;
	return -1;
}

// The figures of the heap on a device: bytes in use and bytes of segments, now and at their peaks.
struct figures {
	uint64_t used, reserved, used_high, reserved_high;
};

// The peaks that a request for figures resets to the present values: a bit each.
enum { RESET_USED = 1, RESET_RESERVED = 2 };

static struct figures figures_of(CUdevice d, uint64_t reset)
{
	ta_cuda_known known[TA_CUDA_CONTEXTS];
	struct figures f = {0};
	for (int i = ta_cuda_contexts(known) - 1; i >= 0; i--) {
		ta_cuda_request r;
		if (known[i].device != d)
			continue;
		ta_cuda_ask(&r, TA_CUDA_OP_POOL_FIGURES, known[i].context);
		r.Count = reset;
		if (ta_cuda_serve(&r, NULL, NULL, NULL) != CUDA_SUCCESS)
			continue;
		f.used += r.Value;
		f.reserved += r.Extra;
		f.used_high += r.OnBytes;
		f.reserved_high += r.OnUsed;
	}
	return f;
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice d, CUmemoryPool pool)
{
	__atomic_store_n(&chosen, 1, __ATOMIC_RELEASE);
	return TA_CUDA_PASS(cuDeviceSetMemPool, d, pool);
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool)
{
	__atomic_store_n(&chosen, 1, __ATOMIC_RELEASE);
	return TA_CUDA_PASS(cuMemSetMemPool, location, type, pool);
}

// What the pool keeps includes what is in use.
EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	CUresult e = TA_CUDA_PASS(cuMemPoolTrimTo, pool, keep);
	CUdevice d = e == CUDA_SUCCESS ? device_with(pool) : -1;
	if (d >= 0) {
		int saved = errno;
		uint64_t used = figures_of(d, 0).used;
		ta_cuda_trim_to(d, keep > used ? keep - used : 0);
		errno = saved;
	}
	return e;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	CUresult e = TA_CUDA_PASS(cuMemPoolGetAttribute, pool, attribute, value);
	if (e != CUDA_SUCCESS || attribute < CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
		attribute > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		return e;
	CUdevice d = device_with(pool);
	if (d < 0)
		return e;
	struct figures f = figures_of(d, 0);
	uint64_t *n = value;
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*n += f.reserved;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*n += f.reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*n += f.used;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*n += f.used_high;
		break;
	}
	return e;
}

// The driver accepts no value but 0 for a peak, which then starts anew.
EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	CUresult e = TA_CUDA_PASS(cuMemPoolSetAttribute, pool, attribute, value);
	CUdevice d = e == CUDA_SUCCESS ? device_with(pool) : -1;
	if (d >= 0 && attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
		figures_of(d, RESET_RESERVED);
	if (d >= 0 && attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		figures_of(d, RESET_USED);
	return e;
}

// Gives the contexts of a device access to those of another: the heap's memory is theirs, not the
// pool's.
static void give_access(CUdevice user, CUdevice owner)
{
	ta_cuda_known known[TA_CUDA_CONTEXTS + 2];
	int n = ta_cuda_contexts(known);
	const CUdevice both[] = {user, owner};
	for (int i = 0; i < 2; i++)
		if (ta_cuda_primary(&known[n].context, both[i]) == CUDA_SUCCESS)
			known[n++].device = both[i];
	for (int i = 0; i < n; i++) {
		CUcontext before;
		if (known[i].device != user || ta_cu.cuCtxPushCurrent_v2(known[i].context) != CUDA_SUCCESS)
			continue;
		for (int j = 0; j < n; j++)
			if (known[j].device == owner)
				cuCtxEnablePeerAccess(known[j].context, 0); // it may have access already
		ta_cu.cuCtxPopCurrent_v2(&before);
	}
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *to, size_t n)
{
	CUresult e = TA_CUDA_PASS(cuMemPoolSetAccess, pool, to, n);
	CUdevice d = e == CUDA_SUCCESS ? device_with(pool) : -1;
	for (size_t i = 0; d >= 0 && i < n; i++)
		if (to[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && to[i].location.id != d &&
			to[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			give_access(to[i].location.id, d);
	return e;
}
