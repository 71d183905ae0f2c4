// ta_cuda_*: the device heap for programs that are written for the library.
#include <errno.h>
#include "cuda_driver.h"
#include "boot.h"
#include "exports.h"
#include "tieralloc.h"

// Starts a request about a device. The heap finds the primary context of the device. Returns
// whether a driver can serve it.
static int ask_device(ta_cuda_request *r, uint64_t op, int device)
{
	if (!ta_cuda_serves(NULL) || device < 0)
		return 0;
	ta_cuda_ask(r, op, NULL);
	r->Device = (uint64_t)device;
	return 1;
}

// Serves a request that the heap passes on, by memory of the driver in the request's context.
static CUresult own_alloc(ta_cuda_request *r, void *args)
{
	CUcontext before;
	(void)args;
	if (r->Context == 0)
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult e = ta_cu.cuCtxPushCurrent_v2((CUcontext)r->Context);
	if (e != CUDA_SUCCESS)
		return e;
	CUdeviceptr p;
	e = ta_cu.cuMemAlloc_v2(&p, r->Bytes);
	if (e == CUDA_SUCCESS)
		r->Value = p;
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e;
}

static CUresult own_free(ta_cuda_request *r, void *args)
{
	CUcontext before;
	(void)args;
	if (r->Context == 0)
		return ta_cu.cuMemFree_v2(r->Address);
	CUresult e = ta_cu.cuCtxPushCurrent_v2((CUcontext)r->Context);
	if (e != CUDA_SUCCESS)
		return e;
	e = ta_cu.cuMemFree_v2(r->Address);
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e;
}

static int error_of(CUresult e)
{
	return e == CUDA_ERROR_INVALID_DEVICE || e == CUDA_ERROR_NOT_INITIALIZED ? ENODEV : ENOMEM;
}

// Without a valid context the driver does not check the address, so that error counts as an invalid
// address too.
static int free_error_of(CUresult e)
{
	if (e == CUDA_ERROR_INVALID_VALUE || e == CUDA_ERROR_INVALID_CONTEXT)
		return EINVAL;
	return e == CUDA_ERROR_NOT_INITIALIZED || e == CUDA_ERROR_DEINITIALIZED ? ENODEV : EIO;
}

static void *device_malloc(size_t size, int device, void *stream, void *caller)
{
	uintptr_t free = ta_go_cuda_take(ta_token(), (unsigned)device, (uintptr_t)stream, size);
	if (LIKELY(free != 0))
		return (void *)free;
	ta_cuda_request r;
	if (size == 0)
		return NULL;
	if ((ssize_t)size < 0 || !ask_device(&r, TA_CUDA_OP_STREAM_ALLOC, device))
		return errno = (ssize_t)size < 0 ? ENOMEM : ENODEV, NULL;
	r.Stream = (uint64_t)stream;
	r.Bytes = size;
	ta_cuda_about(&r, caller);
	CUresult e = ta_cuda_serve(&r, NULL, own_alloc, NULL);
	if (e != CUDA_SUCCESS)
		return errno = error_of(e), NULL;
	return (void *)(r.Address != 0 ? r.Address : r.Value);
}

EXPORT void *ta_cuda_malloc(ssize_t size, int device, void *stream)
{
	return device_malloc((size_t)size, device, stream, CALLER);
}

EXPORT void ta_cuda_free(void *p, ssize_t size, int device, void *stream)
{
	ta_cuda_request r;
	(void)size;
	if (LIKELY(ta_go_cuda_give(ta_token(), (unsigned)device, (uintptr_t)stream, (uintptr_t)p)))
		return;
	if (p == NULL)
		return;
	int saved = errno;
	CUresult e = CUDA_ERROR_NOT_INITIALIZED;
	if (ask_device(&r, TA_CUDA_OP_STREAM_FREE, device)) {
		r.Address = (uint64_t)p;
		r.Stream = (uint64_t)stream;
		e = ta_cuda_serve(&r, NULL, own_free, NULL);
	}
	errno = e == CUDA_SUCCESS ? saved : free_error_of(e);
	if (e == CUDA_ERROR_INVALID_VALUE || e == CUDA_ERROR_INVALID_CONTEXT)
		ta_go_cuda_log(TA_EVENT_DEVICE_FREE, (uintptr_t)p, (uintptr_t)e);
}

EXPORT void ta_cuda_record_stream(void *p, void *stream)
{
	ta_cuda_request r;
	CUcontext current;
	if (p == NULL || !ta_cuda_serves(&current))
		return;
	CUcontext of = ta_cuda_stream_context(stream, current);
	if (of == NULL)
		return;
	ta_cuda_ask(&r, TA_CUDA_OP_RECORD, of);
	r.Address = (uint64_t)p;
	r.Stream = (uint64_t)stream;
	CUresult e = ta_cuda_serve(&r, current, NULL, NULL);
	if (e != CUDA_SUCCESS && e != TA_CUDA_PASSED)
		errno = e == CUDA_ERROR_OUT_OF_MEMORY ? ENOMEM : free_error_of(e);
}

EXPORT int ta_cuda_malloc_batch(int device, void *stream, const size_t *sizes, void **out, int n)
{
	if (sizes == NULL || out == NULL || n < 0)
		return errno = EINVAL, -1;
	for (int i = 0; i < n; i++) {
		out[i] = device_malloc(sizes[i], device, stream, CALLER);
		if (out[i] != NULL || sizes[i] == 0)
			continue;
		int why = errno;
		while (i-- > 0) {
			ta_cuda_free(out[i], 0, device, stream);
			out[i] = NULL;
		}
		return errno = why, -1;
	}
	return 0;
}

EXPORT int ta_cuda_warmup(int device, const size_t *sizes, const int *counts, int n)
{
	ta_cuda_request r;
	uint64_t first = 1;
	if (sizes == NULL || counts == NULL || n < 0)
		return errno = EINVAL, -1;
	for (int i = 0; i < n; i++) {
		if (counts[i] < 0 || (ssize_t)sizes[i] < 0)
			return errno = EINVAL, -1;
		if (sizes[i] == 0 || counts[i] == 0)
			continue;
		if (!ask_device(&r, TA_CUDA_OP_WARMUP, device))
			return errno = ENODEV, -1;
		r.Bytes = sizes[i];
		r.Count = (uint64_t)counts[i];
		r.Hint = first;
		first = 0;
		CUresult e = ta_cuda_serve(&r, NULL, NULL, NULL);
		if (e != CUDA_SUCCESS)
			return errno = error_of(e), -1;
	}
	return 0;
}

// Requests op in each context of the device, or of all devices if it is -1. Returns the number of
// contexts. bytes is the memory to keep in all of them together.
static int each_context(uint64_t op, int device, size_t bytes)
{
	ta_cuda_known known[TA_CUDA_CONTEXTS];
	CUcontext current;
	int done = 0;
	if (!ta_cuda_serves(&current))
		return 0;
	for (int i = ta_cuda_contexts(known) - 1; i >= 0; i--) {
		ta_cuda_request r;
		if (device >= 0 && known[i].device != device)
			continue;
		ta_cuda_ask(&r, op, known[i].context);
		r.Device = (uint64_t)known[i].device;
		r.Bytes = bytes;
		ta_cuda_serve(&r, current, NULL, NULL);
		bytes -= r.Value < bytes ? r.Value : bytes;
		done++;
	}
	return done;
}

EXPORT void ta_cuda_trim(void) { each_context(TA_CUDA_OP_TRIM, -1, 0); }

EXPORT int ta_cuda_trim_to(int device, size_t bytes)
{
	return device >= 0 && each_context(TA_CUDA_OP_TRIM, device, bytes) > 0 ? 0 :
																			 (errno = ENODEV, -1);
}

EXPORT int ta_cuda_coalesce(int device)
{
	return each_context(TA_CUDA_OP_COALESCE, device, 0) > 0 ? 0 : (errno = ENODEV, -1);
}

// The values of Count of TA_CUDA_OP_POOL.
enum { POOL_ENDS, POOL_BEGINS, POOL_GONE };

static void pool(int device, uint64_t id0, uint64_t id1, uint64_t what)
{
	ta_cuda_request r;
	if (!ask_device(&r, TA_CUDA_OP_POOL, device))
		return;
	r.Address = id0;
	r.Bytes = id1;
	r.Count = what;
	ta_cuda_serve(&r, NULL, NULL, NULL);
}

EXPORT void ta_cuda_pool_begin(int device, uint64_t id0, uint64_t id1, void *filter)
{
	(void)filter; // a C++ object that selects streams; the heap takes all streams
	pool(device, id0, id1, POOL_BEGINS);
}

EXPORT void ta_cuda_pool_end(int device, uint64_t id0, uint64_t id1)
{
	pool(device, id0, id1, POOL_ENDS);
}

EXPORT void ta_cuda_pool_release(int device, uint64_t id0, uint64_t id1)
{
	pool(device, id0, id1, POOL_GONE);
}
