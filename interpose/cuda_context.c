// The end of streams and contexts, and who may reach whose memory.
#include "cuda_driver.h"

// What the stream still does with blocks is noted before it is gone.
static CUresult stream_ends(CUresult (*call)(CUstream), CUstream s)
{
	CUcontext current;
	int serves = ta_cuda_serves(&current) && (uintptr_t)s > CU_STREAM_PER_THREAD;
	if (call == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (serves) {
		ta_cuda_request r;
		ta_cuda_ask(&r, TA_CUDA_OP_STREAM_END, current);
		r.Stream = (uint64_t)s;
		ta_cuda_serve(&r, current, NULL, NULL);
	}
	CUresult e = call(s);
	if (e == CUDA_SUCCESS && serves)
		ta_cuda_capture_gone(s);
	return e;
}

EXPORT CUresult cuStreamDestroy(CUstream s) { return stream_ends(TA_CUDA_REAL(cuStreamDestroy), s); }

EXPORT CUresult cuStreamDestroy_v2(CUstream s) { return stream_ends(TA_CUDA_REAL(cuStreamDestroy_v2), s); }

// A context is gone when the driver says so: it refuses to destroy a primary one.
static CUresult context_ends(CUresult (*call)(CUcontext), CUcontext c)
{
	CUcontext current;
	int serves = ta_cuda_serves(&current);
	if (call == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	CUresult e = call(c);
	if (e == CUDA_SUCCESS && serves)
		ta_cuda_context_gone(c);
	return e;
}

EXPORT CUresult cuCtxDestroy(CUcontext c) { return context_ends(TA_CUDA_REAL(cuCtxDestroy), c); }

EXPORT CUresult cuCtxDestroy_v2(CUcontext c) { return context_ends(TA_CUDA_REAL(cuCtxDestroy_v2), c); }

// The device's primary context where it is active, else NULL. Only retaining it tells.
static CUcontext primary_of(CUdevice d)
{
	unsigned flags;
	int active = 0;
	CUcontext c = NULL;
	if (ta_cu.cuDevicePrimaryCtxRelease_v2 == NULL)
		return NULL;
	if (ta_cu.cuDevicePrimaryCtxGetState(d, &flags, &active) != CUDA_SUCCESS || !active ||
	    ta_cu.cuDevicePrimaryCtxRetain(&c, d) != CUDA_SUCCESS)
		return NULL;
	ta_cu.cuDevicePrimaryCtxRelease_v2(d);
	return c;
}

// Releases or resets the primary context by call. A reset leaves its handle as it was,
// active again as soon as it is retained; a release may have left it alive.
static CUresult primary_ends(CUresult (*call)(CUdevice), CUdevice d, int reset)
{
	CUcontext current, c = NULL;
	unsigned flags;
	int active = 0;
	if (call == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ta_cuda_serves(&current))
		c = primary_of(d);
	CUresult e = call(d);
	if (e != CUDA_SUCCESS || c == NULL)
		return e;
	if (reset || (ta_cu.cuDevicePrimaryCtxGetState(d, &flags, &active) == CUDA_SUCCESS && !active))
		ta_cuda_context_gone(c);
	return e;
}

#define PRIMARY_ENDS(name, reset) \
	EXPORT CUresult name(CUdevice d) { return primary_ends(TA_CUDA_REAL(name), d, reset); }
PRIMARY_ENDS(cuDevicePrimaryCtxRelease, 0)
PRIMARY_ENDS(cuDevicePrimaryCtxRelease_v2, 0)
PRIMARY_ENDS(cuDevicePrimaryCtxReset, 1)
PRIMARY_ENDS(cuDevicePrimaryCtxReset_v2, 1)

static void peer(CUcontext to, uint64_t from_now_on)
{
	CUcontext current;
	ta_cuda_request r;
	if (!ta_cuda_serves(&current) || current == NULL)
		return;
	ta_cuda_ask(&r, TA_CUDA_OP_PEER, current);
	r.Address = (uint64_t)to;
	r.Count = from_now_on;
	ta_cuda_serve(&r, current, NULL, NULL);
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext to, unsigned flags)
{
	CUresult e = TA_CUDA_PASS(cuCtxEnablePeerAccess, to, flags);
	if (e == CUDA_SUCCESS)
		peer(to, 1);
	return e;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext to)
{
	CUresult e = TA_CUDA_PASS(cuCtxDisablePeerAccess, to);
	if (e == CUDA_SUCCESS)
		peer(to, 0);
	return e;
}
