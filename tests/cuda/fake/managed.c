// Managed memory: advice, prefetch and discard, as the driver keeps them for each page. With
// FAKE_CUDA 11 the driver lacks what came with 12.2, with 12 what came with 13.
#include "fake.h"

#ifndef FAKE_CUDA
#	define FAKE_CUDA 13
#endif

enum {
	PAGE = 4096,
	NODES = 4,
	NEAREST = 1,
	DISCARDED = 0xdd,
	INVALID_DEVICE = 101,
	NO_DEVICE = -2
};

// What is known of a page. accessed_by has a bit for each device, and one above for the host.
struct page {
	CUmemLocation preferred, prefetched;
	unsigned accessed_by;
	int read_mostly;
};

// The pages of a range, some of an allocation's.
struct range {
	struct page *page;
	size_t n;
};

static size_t last_places;

size_t fake_places(void) { return last_places; }

static int range(struct range *r, CUdeviceptr p, size_t n)
{
	CUdeviceptr start;
	size_t size;
	void **kept = fake_managed(p, n, &start, &size);
	if (kept == NULL)
		return 0;
	if (*kept == NULL)
		*kept = calloc((size + PAGE - 1) / PAGE, sizeof(struct page));
	size_t first = (p - start) / PAGE;
	*r = (struct range){(struct page *)*kept + first, (p - start + n - 1) / PAGE - first + 1};
	return 1;
}

// Success, or why memory cannot be there. What the driver does not look at is made plain.
static CUresult place(CUmemLocation *l)
{
	switch (l->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return l->id >= 0 && l->id < DEVICES && fake_manages() > 1 ? CUDA_SUCCESS : INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
		l->id = 0;
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return l->id >= 0 && l->id < NODES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		*l = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, NEAREST};
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUmemLocation of_ordinal(CUdevice d)
{
	return d == CU_DEVICE_CPU ? (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0} :
								(CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, d};
}

static CUresult advise(CUdeviceptr p, size_t n, int advice, CUmemLocation l)
{
	struct range r;
	int processor = l.type == CU_MEM_LOCATION_TYPE_DEVICE || l.type == CU_MEM_LOCATION_TYPE_HOST;
	int names = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
		advice >= CU_MEM_ADVISE_SET_ACCESSED_BY;
	CUresult e = place(&l);
	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY ||
		!range(&r, p, n))
		return CUDA_ERROR_INVALID_VALUE;
	if (names && e != CUDA_SUCCESS)
		return e;
	if (advice >= CU_MEM_ADVISE_SET_ACCESSED_BY && !processor)
		return fake_illegal(CUDA_ERROR_INVALID_VALUE, "a NUMA node is no processor");
	unsigned bit = 1u << (l.type == CU_MEM_LOCATION_TYPE_DEVICE ? l.id : DEVICES);
	for (size_t i = 0; i < r.n; i++) {
		struct page *at = &r.page[i];
		if (advice <= CU_MEM_ADVISE_UNSET_READ_MOSTLY)
			at->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
		else if (advice <= CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
			at->preferred = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ? l :
																			 (CUmemLocation){0, 0};
		else
			at->accessed_by = advice == CU_MEM_ADVISE_SET_ACCESSED_BY ? at->accessed_by | bit :
																		at->accessed_by & ~bit;
	}
	return CUDA_SUCCESS;
}

API CUresult cuMemAdvise(CUdeviceptr p, size_t n, int advice, CUdevice d)
{
	CALL(cuMemAdvise, INIT);
	return advise(p, n, advice, of_ordinal(d));
}

// The stream that is to do it: a live one that captures no graph.
static CUresult worker(CUstream *s)
{
	*s = fake_live_stream(*s, 0);
	if (*s == NULL)
		return INVALID_HANDLE;
	return (*s)->capture ? CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static void prefetch(struct range r, CUmemLocation l, CUstream s)
{
	for (size_t i = 0; i < r.n; i++)
		r.page[i].prefetched = l;
	fake_queue(s, RECORD); // work, which changes nothing that can be seen
}

static CUresult prefetch_one(CUdeviceptr p, size_t n, CUmemLocation l, CUstream s)
{
	struct range r;
	CUresult e = worker(&s);
	if (e == CUDA_SUCCESS)
		e = place(&l);
	if (e != CUDA_SUCCESS || !range(&r, p, n))
		return e != CUDA_SUCCESS ? e : CUDA_ERROR_INVALID_VALUE;
	prefetch(r, l, s);
	return CUDA_SUCCESS;
}

API CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice d, CUstream s)
{
	CALL(cuMemPrefetchAsync, CONTEXT);
	return prefetch_one(p, n, of_ordinal(d), s);
}

// What is the same in the whole range.
static CUmemLocation common(struct range r, int prefetched)
{
	CUmemLocation l = prefetched ? r.page->prefetched : r.page->preferred;
	for (size_t i = 1; i < r.n; i++) {
		CUmemLocation m = prefetched ? r.page[i].prefetched : r.page[i].preferred;
		if (m.type != l.type || m.id != l.id)
			return (CUmemLocation){0, 0};
	}
	return l;
}

static int ordinal(CUmemLocation l)
{
	return l.type == 0 ? NO_DEVICE : l.type == CU_MEM_LOCATION_TYPE_DEVICE ? l.id : CU_DEVICE_CPU;
}

static void accessed_by(struct range r, int *out, size_t n)
{
	unsigned all = ~0u;
	size_t found = 0;
	for (size_t i = 0; i < r.n; i++)
		all &= r.page[i].accessed_by;
	for (int d = 0; d <= DEVICES; d++)
		if (all >> d & 1 && found < n)
			out[found++] = d < DEVICES ? d : CU_DEVICE_CPU;
	while (found < n)
		out[found++] = NO_DEVICE;
}

API CUresult cuMemRangeGetAttribute(void *data, size_t size, int attribute, CUdeviceptr p, size_t n)
{
	CALL(cuMemRangeGetAttribute, INIT);
	struct range r;
	int *out = data, read_mostly = 1;
	if (out == NULL || size == 0 || size % 4 != 0 || (size != 4 && attribute != 3) ||
		!range(&r, p, n))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case 1:
		for (size_t i = 0; i < r.n; i++)
			read_mostly &= r.page[i].read_mostly;
		*out = read_mostly;
		return CUDA_SUCCESS;
	case 2:
	case 4:
		*out = ordinal(common(r, attribute == 4));
		return CUDA_SUCCESS;
	case 3:
		accessed_by(r, out, size / 4);
		return CUDA_SUCCESS;
#if FAKE_CUDA >= 12
	case 5:
	case 7:
		*out = common(r, attribute == 7).type;
		return CUDA_SUCCESS;
	case 6:
	case 8:
		*out = common(r, attribute == 8).id;
		return CUDA_SUCCESS;
#endif
	}
	return CUDA_ERROR_INVALID_VALUE;
}

#if FAKE_CUDA >= 12
API CUresult cuMemAdvise_v2(CUdeviceptr p, size_t n, int advice, CUmemLocation l)
{
	CALL(cuMemAdvise_v2, INIT);
	return advise(p, n, advice, l);
}

API CUresult cuMemPrefetchAsync_v2(
	CUdeviceptr p, size_t n, CUmemLocation l, unsigned flags, CUstream s)
{
	CALL(cuMemPrefetchAsync_v2, CONTEXT);
	return flags != 0 ? CUDA_ERROR_INVALID_VALUE : prefetch_one(p, n, l, s);
}
#endif

#if FAKE_CUDA >= 13
// A batch is checked as a whole before anything of it is done.
static CUresult check(
	CUdeviceptr *p, size_t *n, size_t count, unsigned long long flags, CUstream *s)
{
	struct range r;
	if (p == NULL || n == NULL || count == 0 || flags != 0 || (uintptr_t)*s <= CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!range(&r, p[i], n[i]))
			return CUDA_ERROR_INVALID_VALUE;
	return worker(s);
}

static CUresult check_places(CUmemLocation *l, size_t *first, size_t n, size_t count)
{
	CUresult e = CUDA_SUCCESS;
	if (l == NULL || first == NULL || n == 0 || n > count)
		return fake_illegal(CUDA_ERROR_INVALID_VALUE, "a batch without places, or with too many");
	for (size_t i = 0; i < n && e == CUDA_SUCCESS; i++) {
		CUmemLocation copy = l[i];
		if (first[i] >= count || (i == 0 ? first[i] != 0 : first[i] <= first[i - 1]))
			return fake_illegal(CUDA_ERROR_INVALID_VALUE, "the places of a batch are out of order");
		e = place(&copy);
	}
	return e;
}

// The contents of what is discarded are no longer what they were.
static void discard(CUdeviceptr p, size_t n, CUstream s)
{
	struct item *i = fake_queue(s, WRITE);
	i->address = p;
	i->bytes = n;
	i->byte = DISCARDED;
}

static CUresult batch(CUdeviceptr *p, size_t *n, size_t count, CUmemLocation *l, size_t *first,
	size_t places, CUstream s, int discards)
{
	struct range r;
	size_t k = 0;
	CUresult e = check_places(l, first, places, count);
	if (e != CUDA_SUCCESS)
		return e;
	last_places = places;
	for (size_t i = 0; i < count; i++) {
		while (k + 1 < places && first[k + 1] <= i)
			k++;
		CUmemLocation at = l[k];
		place(&at);
		range(&r, p[i], n[i]);
		if (discards)
			discard(p[i], n[i], s);
		prefetch(r, at, s);
	}
	return CUDA_SUCCESS;
}

#	define BATCH(name, discards) \
		API CUresult name(CUdeviceptr *p, size_t *n, size_t count, CUmemLocation *l, \
			size_t *first, size_t places, unsigned long long flags, CUstream s) \
		{ \
			CALL(name, CONTEXT); \
			CUresult e = check(p, n, count, flags, &s); \
			return e != CUDA_SUCCESS ? e : batch(p, n, count, l, first, places, s, discards); \
		}
BATCH(cuMemPrefetchBatchAsync, 0)
BATCH(cuMemDiscardAndPrefetchBatchAsync, 1)

API CUresult cuMemDiscardBatchAsync(
	CUdeviceptr *p, size_t *n, size_t count, unsigned long long flags, CUstream s)
{
	CALL(cuMemDiscardBatchAsync, CONTEXT);
	CUresult e = check(p, n, count, flags, &s);
	for (size_t i = 0; e == CUDA_SUCCESS && i < count; i++)
		discard(p[i], n[i], s);
	return e;
}
#endif
