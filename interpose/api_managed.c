// ta_managed_*: managed memory, and advice to the driver about ranges of it. The driver keeps that
// state, and checks the ranges; this file keeps nothing.
#include <errno.h>
#include <sys/mman.h>
#include "cuda_driver.h"
#include "libc_symbol.h"
#include "tieralloc.h"

_Static_assert(sizeof(ta_location) == sizeof(CUmemLocation), "a ta_location is handed on as it is");
_Static_assert(sizeof(void *) == sizeof(CUdeviceptr), "and so is a list of addresses");

static CUresult call_managed(ta_cuda_request *r, void *args)
{
	CUcontext before;
	CUdeviceptr p;
	(void)args;
	if (r->Context == 0)
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult e = ta_cu.cuCtxPushCurrent_v2((CUcontext)r->Context);
	if (e != CUDA_SUCCESS)
		return e;
	e = ta_cu.cuMemAllocManaged(&p, r->Bytes, CU_MEM_ATTACH_GLOBAL);
	if (e == CUDA_SUCCESS)
		r->Value = p;
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e;
}

static int error_of(CUresult e)
{
	switch (e) {
	case CUDA_ERROR_INVALID_DEVICE:
	case CUDA_ERROR_NOT_INITIALIZED:
		return ENODEV;
	case CUDA_ERROR_NOT_SUPPORTED:
		return ENOTSUP;
	default:
		return ENOMEM;
	}
}

EXPORT void *ta_managed_malloc(size_t size, int device)
{
	ta_cuda_request r;
	if (size == 0)
		return errno = EINVAL, NULL;
	if (device < 0 || !ta_cuda_serves(NULL))
		return errno = ENODEV, NULL;
	ta_cuda_ask(&r, TA_CUDA_OP_FOREIGN, NULL);
	r.Device = (uint64_t)device;
	r.Bytes = size;
	r.Count = 1;
	CUresult e = ta_cuda_serve(&r, NULL, call_managed, NULL);
	return e == CUDA_SUCCESS ? (void *)r.Value : (errno = error_of(e), NULL);
}

// Makes the context of the memory current on a thread without one. Returns whether the caller must
// undo that.
static int enter(CUdeviceptr p)
{
	CUcontext c;
	if (LIKELY(ta_cu.cuCtxGetCurrent(&c) != CUDA_SUCCESS || c != NULL))
		return 0;
	if (ta_cu.cuPointerGetAttribute == NULL ||
		ta_cu.cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p) != CUDA_SUCCESS ||
		c == NULL)
		return 0;
	return ta_cu.cuCtxPushCurrent_v2(c) == CUDA_SUCCESS;
}

static CUresult leave(int entered, CUresult e)
{
	CUcontext before;
	if (UNLIKELY(entered))
		ta_cu.cuCtxPopCurrent_v2(&before);
	return e;
}

static CUresult call_free(ta_cuda_request *r, void *args)
{
	CUdeviceptr p = *(CUdeviceptr *)args;
	(void)r;
	int entered = enter(p);
	return leave(entered, ta_cu.cuMemFree_v2(p));
}

EXPORT int ta_managed_free(void *p)
{
	CUcontext current;
	ta_cuda_request none = {0};
	CUdeviceptr address = (CUdeviceptr)p;
	if (p == NULL)
		return CUDA_SUCCESS;
	if (!ta_cuda_find() || ta_cu.cuMemFree_v2 == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ta_cuda_serves(&current))
		return call_free(&none, &address);
	return ta_cuda_free_block(address, current, call_free, &address);
}

// Whether memory can be prefetched to the place, or can prefer it.
static int is_place(ta_location l)
{
	switch (l.kind) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return l.id >= 0;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return 1;
	}
	return 0;
}

// The processors of a system: its devices, and the host as one.
static int is_processor(ta_location l)
{
	return is_place(l) &&
		(l.kind == CU_MEM_LOCATION_TYPE_DEVICE || l.kind == CU_MEM_LOCATION_TYPE_HOST);
}

static CUmemLocation location_of(ta_location l) { return (CUmemLocation){l.kind, l.id}; }

// For drivers before 12.2, which know devices by ordinal, and a single host.
static CUdevice ordinal_of(ta_location l)
{
	return l.kind == CU_MEM_LOCATION_TYPE_DEVICE ? l.id : CU_DEVICE_CPU;
}

EXPORT int ta_managed_advise(void *p, size_t n, int advice, ta_location where)
{
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: // the driver ignores the location, but checks it
		where = (ta_location){CU_MEM_LOCATION_TYPE_HOST, 0};
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		if (!is_place(where))
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		if (!is_processor(where))
			return CUDA_ERROR_INVALID_VALUE;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!ta_cuda_find())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ta_cu.cuMemAdvise_v2 == NULL && (ta_cu.cuMemAdvise == NULL || !is_processor(where)))
		return CUDA_ERROR_NOT_SUPPORTED;
	CUdeviceptr at = (CUdeviceptr)p;
	int entered = enter(at);
	CUresult e = ta_cu.cuMemAdvise_v2 != NULL ?
		ta_cu.cuMemAdvise_v2(at, n, advice, location_of(where)) :
		ta_cu.cuMemAdvise(at, n, advice, ordinal_of(where));
	return leave(entered, e);
}

// The places of a batch in the driver's form: one entry for consecutive targets with the same
// place, with the number of the first of them. PLACES entries fit in the structure; more need a
// mapping.
enum { PLACES = 256 };
struct places {
	CUmemLocation *where;
	size_t *first, count;
	void *mapped; // MAP_FAILED: where and first are those below
	size_t bytes;
	CUmemLocation few_where[PLACES];
	size_t few_first[PLACES];
};

static int is_same(ta_location a, ta_location b)
{
	int numbered = a.kind == CU_MEM_LOCATION_TYPE_DEVICE ||
		a.kind == CU_MEM_LOCATION_TYPE_HOST_NUMA;
	return a.kind == b.kind && (a.id == b.id || !numbered);
}

// Counts the places to pass to the driver. 0: a place is invalid.
static size_t count_places(const ta_location *where, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && is_same(where[i], where[i - 1]))
			continue;
		if (!is_place(where[i]))
			return 0;
		count++;
	}
	return count;
}

// Fills in the places of n targets. end_places frees the memory for them.
static CUresult gather(struct places *s, const ta_location *where, size_t n)
{
	size_t told = 0;
	s->where = s->few_where;
	s->first = s->few_first;
	s->mapped = MAP_FAILED;
	s->count = count_places(where, n);
	if (s->count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (UNLIKELY(s->count > PLACES)) {
		s->bytes = s->count * (sizeof *s->where + sizeof *s->first);
		s->mapped = TA_RARE(mmap)(
			NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (s->mapped == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		s->first = s->mapped;
		s->where = (CUmemLocation *)(s->first + s->count);
	}
	for (size_t i = 0; i < n; i++)
		if (i == 0 || !is_same(where[i], where[i - 1])) {
			s->where[told] = location_of(where[i]);
			s->first[told++] = i;
		}
	return CUDA_SUCCESS;
}

static void end_places(struct places *s)
{
	if (UNLIKELY(s->mapped != MAP_FAILED))
		TA_RARE(munmap)(s->mapped, s->bytes);
}

// The driver does not change the lists, although its types are not const.
typedef CUresult (*batch_call)(CUdeviceptr *, size_t *, size_t, CUmemLocation *, size_t *, size_t,
	unsigned long long, CUstream);

static CUresult batch(batch_call call, void *const *p, const size_t *n, size_t count,
	const ta_location *where, size_t wheres, CUstream s)
{
	struct places places;
	if (call == NULL)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult e = gather(&places, where, wheres);
	if (e != CUDA_SUCCESS)
		return e;
	int entered = enter((CUdeviceptr)p[0]);
	e = call((CUdeviceptr *)p, (size_t *)n, count, places.where, places.first, places.count, 0, s);
	end_places(&places);
	return leave(entered, e);
}

static CUresult prefetch_one(CUdeviceptr p, size_t n, ta_location where, CUstream s)
{
	if (!is_place(where))
		return CUDA_ERROR_INVALID_VALUE;
	if (ta_cu.cuMemPrefetchAsync_v2 == NULL &&
		(ta_cu.cuMemPrefetchAsync == NULL || !is_processor(where)))
		return CUDA_ERROR_NOT_SUPPORTED;
	int entered = enter(p);
	CUresult e = ta_cu.cuMemPrefetchAsync_v2 != NULL ?
		ta_cu.cuMemPrefetchAsync_v2(p, n, location_of(where), 0, s) :
		ta_cu.cuMemPrefetchAsync(p, n, ordinal_of(where), s);
	return leave(entered, e);
}

static int is_list(void *const *p, const size_t *n, size_t count)
{
	return p != NULL && n != NULL && count != 0;
}

// One place for all targets, or one for each.
static int is_paired(const ta_location *where, size_t wheres, size_t count)
{
	return where != NULL && (wheres == 1 || wheres == count);
}

EXPORT int ta_managed_prefetch(void *const *p, const size_t *n, size_t count,
	const ta_location *where, size_t wheres, void *stream)
{
	if (!is_list(p, n, count) || !is_paired(where, wheres, count))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ta_cuda_find())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (count == 1)
		return prefetch_one((CUdeviceptr)p[0], n[0], where[0], stream);
	return batch(ta_cu.cuMemPrefetchBatchAsync, p, n, count, where, wheres, stream);
}

EXPORT int ta_managed_discard_prefetch(void *const *p, const size_t *n, size_t count,
	const ta_location *where, size_t wheres, void *stream)
{
	if (!is_list(p, n, count) || !is_paired(where, wheres, count))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ta_cuda_find())
		return CUDA_ERROR_NOT_INITIALIZED;
	return batch(ta_cu.cuMemDiscardAndPrefetchBatchAsync, p, n, count, where, wheres, stream);
}

EXPORT int ta_managed_discard(void *const *p, const size_t *n, size_t count, void *stream)
{
	if (!is_list(p, n, count))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ta_cuda_find())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ta_cu.cuMemDiscardBatchAsync == NULL)
		return CUDA_ERROR_NOT_SUPPORTED;
	int entered = enter((CUdeviceptr)p[0]);
	return leave(
		entered, ta_cu.cuMemDiscardBatchAsync((CUdeviceptr *)p, (size_t *)n, count, 0, stream));
}

EXPORT int ta_managed_get(const void *p, size_t n, int attribute, int *out, size_t count)
{
	CUdeviceptr at = (CUdeviceptr)p;
	if (out == NULL || count == 0 || count > SIZE_MAX / sizeof *out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ta_cuda_find())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ta_cu.cuMemRangeGetAttribute == NULL)
		return CUDA_ERROR_NOT_SUPPORTED;
	int entered = enter(at);
	return leave(entered, ta_cu.cuMemRangeGetAttribute(out, count * sizeof *out, attribute, at, n));
}
