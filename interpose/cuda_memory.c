// The library's versions of the driver's memory functions: allocation, free, and questions about a
// pointer or a device. Calls that the heap does not take go to the driver unchanged.
#include "cuda_driver.h"

struct alloc_call {
	CUdeviceptr got;
	size_t n;
};

static CUresult call_alloc(ta_cuda_request *r, void *args)
{
	struct alloc_call *a = args;
	CUresult e = ta_cu.cuMemAlloc_v2(&a->got, a->n);
	if (e == CUDA_SUCCESS)
		r->Value = a->got;
	return e;
}

static CUresult call_free(ta_cuda_request *r, void *args)
{
	(void)r;
	return ta_cu.cuMemFree_v2(*(CUdeviceptr *)args);
}

// The address in Value comes from a call that was passed on, or is a block of the heap.
CUresult ta_cuda_alloc(
	CUdeviceptr *out, size_t n, CUcontext current, void *caller, ta_cuda_call call, void *args)
{
	ta_cuda_request r;
	ta_cuda_ask(&r, TA_CUDA_OP_ALLOC, current);
	r.Bytes = n;
	ta_cuda_about(&r, caller);
	CUresult e = ta_cuda_serve(&r, current, call, args);
	if (e == CUDA_SUCCESS)
		*out = r.Address != 0 ? r.Address : r.Value;
	return e;
}

CUresult ta_cuda_free_block(CUdeviceptr p, CUcontext current, ta_cuda_call call, void *args)
{
	ta_cuda_request r;
	ta_cuda_ask(&r, TA_CUDA_OP_FREE, current);
	r.Address = p;
	return ta_cuda_serve(&r, current, call, args);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t n)
{
	CUcontext current;
	CUresult e = ta_cuda_answered();
	if (UNLIKELY(e != CUDA_SUCCESS))
		return e;
	if (!ta_cuda_serves(&current) || current == NULL || out == NULL || n == 0)
		return TA_CUDA_PASS(cuMemAlloc_v2, out, n);
	struct alloc_call a = {.n = n};
	return ta_cuda_alloc(out, n, current, CALLER, call_alloc, &a);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
	CUcontext current;
	CUresult e = ta_cuda_answered();
	if (UNLIKELY(e != CUDA_SUCCESS))
		return e;
	if (!ta_cuda_serves(&current) || p == 0)
		return TA_CUDA_PASS(cuMemFree_v2, p);
	return ta_cuda_free_block(p, current, call_free, &p);
}

static CUresult call_free_async(ta_cuda_request *r, void *args)
{
	(void)args;
	return ta_cu.cuMemFreeAsync((CUdeviceptr)r->Address, (CUstream)r->Stream);
}

// The driver refuses an invalid stream, and a thread without a context. On a stream that captures a
// graph it frees memory of the graph only. Where the heap serves cuMemAllocAsync, the program has
// ordered the free after all work on the block, whatever stream the block was allocated on.
static CUresult free_async(CUdeviceptr p, CUstream s, CUcontext current)
{
	ta_cuda_request r;
	CUcontext of = ta_cuda_stream_context(s, current);
	if (of == NULL)
		return ta_cu.cuMemFreeAsync(p, s);
	if (ta_flags.CudaAsync && ta_cuda_captures(s) && ta_cuda_block(&p, &r))
		return ta_cu.cuMemFreeAsync(TA_CUDA_NOWHERE, s);
	ta_cuda_ask(&r, TA_CUDA_OP_STREAM_FREE, of);
	r.Address = p;
	r.Stream = (uint64_t)s;
	r.Count = ta_flags.CudaAsync;
	return ta_cuda_serve(&r, current, call_free_async, NULL);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s)
{
	CUcontext current;
	if (!ta_cuda_serves(&current) || p == 0)
		return TA_CUDA_PASS(cuMemFreeAsync, p, s);
	return free_async(p, s, current);
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, CUstream s)
{
	CUcontext current;
	if (!ta_cuda_serves(&current) || p == 0)
		return TA_CUDA_PASS(cuMemFreeAsync_ptsz, p, s);
	return free_async(p, ta_cuda_per_thread(s), current);
}

int ta_cuda_block(CUdeviceptr *p, ta_cuda_request *r)
{
	CUcontext current;
	if (*p == 0 || !ta_cuda_serves(&current))
		return 0;
	ta_cuda_ask(r, TA_CUDA_OP_RANGE, current);
	r->Address = *p;
	CUresult e = ta_cuda_serve(r, current, NULL, NULL);
	if (e != CUDA_SUCCESS && e != TA_CUDA_PASSED)
		*p = TA_CUDA_NOWHERE;
	return e == CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
	ta_cuda_request r;
	if (!ta_cuda_block(&p, &r))
		return TA_CUDA_PASS(cuMemGetAddressRange_v2, base, size, p);
	if (base != NULL)
		*base = r.Value;
	if (size != NULL)
		*size = r.Extra;
	return CUDA_SUCCESS;
}

// Replaces the answer for the segment by that for the block.
static void correct(int attribute, void *data, const ta_cuda_request *block)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT: // the driver knows none for memory at reserved addresses
		if (*(CUcontext *)data == NULL)
			*(CUcontext *)data = (CUcontext)block->Context;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(uint64_t *)data = block->Number;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(uint64_t *)data = block->Value;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = block->Extra;
		break;
	}
}

EXPORT CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr p)
{
	ta_cuda_request block;
	int ours = ta_cuda_block(&p, &block);
	CUresult e = TA_CUDA_PASS(cuPointerGetAttribute, data, attribute, p);
	if (e == CUDA_SUCCESS && ours)
		correct(attribute, data, &block);
	return e;
}

EXPORT CUresult cuPointerGetAttributes(unsigned n, int *attributes, void **data, CUdeviceptr p)
{
	ta_cuda_request block;
	int ours = ta_cuda_block(&p, &block);
	CUresult e = TA_CUDA_PASS(cuPointerGetAttributes, n, attributes, data, p);
	for (unsigned i = 0; e == CUDA_SUCCESS && ours && i < n; i++)
		correct(attributes[i], data[i], &block);
	return e;
}

// An attribute holds for the whole allocation of the driver, and stays when a block of it is freed.
// So the heap does not reuse such a block.
EXPORT CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr p)
{
	CUcontext current;
	CUresult e = TA_CUDA_PASS(cuPointerSetAttribute, value, attribute, p);
	if (e == CUDA_SUCCESS && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
		ta_cuda_serves(&current)) {
		ta_cuda_request r;
		ta_cuda_ask(&r, TA_CUDA_OP_NON_REUSABLE, current);
		r.Address = p;
		ta_cuda_serve(&r, current, NULL, NULL);
	}
	return e;
}

CUresult ta_cuda_memory(size_t *free, size_t *total)
{
	CUcontext current;
	ta_cuda_request r;
	if (!ta_cuda_serves(&current) || current == NULL)
		return TA_CUDA_PASS(cuMemGetInfo_v2, free, total);
	ta_cuda_ask(&r, TA_CUDA_OP_INFO, current);
	CUresult e = ta_cuda_serve(&r, current, NULL, NULL);
	if (e == TA_CUDA_PASSED)
		return TA_CUDA_PASS(cuMemGetInfo_v2, free, total);
	if (e == CUDA_SUCCESS && free != NULL)
		*free = r.Value;
	if (e == CUDA_SUCCESS && total != NULL)
		*total = r.Extra;
	return e;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) { return ta_cuda_memory(free, total); }

EXPORT CUresult cuDeviceTotalMem_v2(size_t *total, CUdevice d)
{
	CUcontext current;
	CUresult e = TA_CUDA_PASS(cuDeviceTotalMem_v2, total, d);
	if (e != CUDA_SUCCESS || !ta_cuda_serves(&current))
		return e;
	ta_cuda_request r;
	ta_cuda_ask(&r, TA_CUDA_OP_TOTAL, current);
	r.Device = (uint64_t)d;
	r.Extra = *total;
	if (ta_cuda_serve(&r, current, NULL, NULL) == CUDA_SUCCESS)
		*total = r.Extra;
	return e;
}
