// The begin and end of contexts, the end of streams, and peer access.
#include "cuda_driver.h"

// Ends a stream by call. First it tells the heap, which waits for the stream's work on blocks.
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
		ta_mm_stream_ends(s);
	}
	CUresult e = call(s);
	if (e == CUDA_SUCCESS && serves)
		ta_cuda_capture_gone(s);
	return e;
}

EXPORT CUresult cuStreamDestroy(CUstream s)
{
	return stream_ends(TA_CUDA_REAL(cuStreamDestroy), s);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream s)
{
	return stream_ends(TA_CUDA_REAL(cuStreamDestroy_v2), s);
}

#define CONTEXT_BEGINS(name, params, ...) \
	EXPORT CUresult name params \
	{ \
		if (!ta_cuda_serves(NULL)) \
			return TA_CUDA_PASS(name, __VA_ARGS__); \
		ta_cuda_lives_lock(); \
		CUresult e = TA_CUDA_PASS(name, __VA_ARGS__); \
		ta_cuda_lives_unlock(); \
		return e; \
	}
// clang-format off
CONTEXT_BEGINS(cuCtxCreate, (CUcontext *out, unsigned flags, CUdevice d), out, flags, d)
CONTEXT_BEGINS(cuCtxCreate_v2, (CUcontext *out, unsigned flags, CUdevice d), out, flags, d)
CONTEXT_BEGINS(cuCtxCreate_v3, (CUcontext *out, void *affinity, int n, unsigned flags, CUdevice d),
	out, affinity, n, flags, d)
CONTEXT_BEGINS(cuCtxCreate_v4, (CUcontext *out, void *params, unsigned flags, CUdevice d),
	out, params, flags, d)
CONTEXT_BEGINS(cuDevicePrimaryCtxRetain, (CUcontext *out, CUdevice d), out, d)
// clang-format on

// The number of contexts that have ended.
static uint64_t ends;

// Handles the end of a context, with all its memory and streams.
static void context_gone(CUcontext c)
{
	ta_cuda_request r;
	__atomic_add_fetch(&ends, 1, __ATOMIC_RELEASE);
	ta_cuda_captures_gone(c);
	ta_cuda_forget(c);
	ta_cuda_ask(&r, TA_CUDA_OP_CONTEXT_END, c);
	ta_cuda_serve(&r, NULL, NULL, NULL);
	ta_mm_context_gone(c);
}

// Ends a context by call. The context counts as ended only if the driver succeeds: the driver
// refuses to destroy a primary context.
static CUresult context_ends(CUresult (*call)(CUcontext), CUcontext c)
{
	CUcontext current;
	int serves = ta_cuda_serves(&current);
	if (call == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	ta_cuda_lives_lock();
	CUresult e = call(c);
	if (e == CUDA_SUCCESS && serves)
		context_gone(c);
	ta_cuda_lives_unlock();
	return e;
}

EXPORT CUresult cuCtxDestroy(CUcontext c) { return context_ends(TA_CUDA_REAL(cuCtxDestroy), c); }

EXPORT CUresult cuCtxDestroy_v2(CUcontext c)
{
	return context_ends(TA_CUDA_REAL(cuCtxDestroy_v2), c);
}

// The primary context of the device if it is active, else NULL. Only retaining it gives its handle.
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

// Releases or resets the primary context by call. After a reset the handle stays the same, and is
// active again once the context is retained. A release may leave the context alive.
static CUresult call_primary(CUresult (*call)(CUdevice), CUdevice d, int reset)
{
	CUcontext current, c = NULL;
	unsigned flags;
	int active = 0;
	if (ta_cuda_serves(&current))
		c = primary_of(d);
	CUresult e = call(d);
	if (e != CUDA_SUCCESS || c == NULL)
		return e;
	if (reset || (ta_cu.cuDevicePrimaryCtxGetState(d, &flags, &active) == CUDA_SUCCESS && !active))
		context_gone(c);
	return e;
}

static CUresult primary_ends(CUresult (*call)(CUdevice), CUdevice d, int reset)
{
	if (call == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	ta_cuda_lives_lock();
	CUresult e = call_primary(call, d, reset);
	ta_cuda_lives_unlock();
	return e;
}

#define PRIMARY_ENDS(name, reset) \
	EXPORT CUresult name(CUdevice d) { return primary_ends(TA_CUDA_REAL(name), d, reset); }
PRIMARY_ENDS(cuDevicePrimaryCtxRelease, 0)
PRIMARY_ENDS(cuDevicePrimaryCtxRelease_v2, 0)
PRIMARY_ENDS(cuDevicePrimaryCtxReset, 1)
PRIMARY_ENDS(cuDevicePrimaryCtxReset_v2, 1)

// Notes that the streams of user may use the memory of owner from now on. With access, its kernels
// may, too.
static void peer(CUcontext user, CUcontext owner, int access)
{
	ta_cuda_request r;
	CUdevice d;
	ta_cuda_ask(&r, TA_CUDA_OP_PEER, user);
	r.Address = (uint64_t)owner;
	if (access && ta_cu.cuCtxGetDevice(&d) == CUDA_SUCCESS) {
		r.Count = 1;
		r.Device = (uint64_t)d;
	}
	ta_cuda_serve(&r, NULL, NULL, NULL);
}

// The end of peer access needs no function here: work that was submitted before continues.
EXPORT CUresult cuCtxEnablePeerAccess(CUcontext to, unsigned flags)
{
	CUcontext current;
	CUresult e = TA_CUDA_PASS(cuCtxEnablePeerAccess, to, flags);
	if (e == CUDA_SUCCESS && ta_cuda_serves(&current) && current != NULL)
		peer(current, to, 1);
	return e;
}

// A copy accesses the memory of both contexts, with or without peer access. A thread does not
// report the same pair twice in a row, until a context ends.
static void copies(CUcontext to, CUcontext from, CUstream s)
{
	static TLS struct {
		CUcontext to, from, user;
		uint64_t ends;
	} last;
	CUcontext current;
	if (to == from || !ta_cuda_serves(&current) || current == NULL)
		return;
	CUcontext user = ta_cuda_stream_context(s, current);
	uint64_t now = __atomic_load_n(&ends, __ATOMIC_ACQUIRE);
	if (user == NULL ||
		(last.to == to && last.from == from && last.user == user && last.ends == now))
		return;
	if (to != user)
		peer(user, to, 0);
	if (from != user)
		peer(user, from, 0);
	last = (__typeof__(last)){to, from, user, now};
}

EXPORT CUresult cuMemcpyPeerAsync(
	CUdeviceptr to, CUcontext of_to, CUdeviceptr from, CUcontext of_from, size_t n, CUstream s)
{
	copies(of_to, of_from, s);
	return TA_CUDA_PASS(cuMemcpyPeerAsync, to, of_to, from, of_from, n, s);
}

EXPORT CUresult cuMemcpyPeerAsync_ptsz(
	CUdeviceptr to, CUcontext of_to, CUdeviceptr from, CUcontext of_from, size_t n, CUstream s)
{
	copies(of_to, of_from, ta_cuda_per_thread(s));
	return TA_CUDA_PASS(cuMemcpyPeerAsync_ptsz, to, of_to, from, of_from, n, s);
}
