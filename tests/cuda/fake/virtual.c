// Virtual memory management: addresses that are reserved, memory without an address, and its
// mapping there. FAKE_VMM=0: the device has none.
#include <sys/mman.h>
#include "memory.h"

enum { UNIT = 2 << 20 };

// It belongs to a device, and to no context, and lives as long as its handle or a mapping.
struct handle_memory {
	size_t n;
	CUdevice device;
	int refs;
};

struct mapping {
	struct mapping *next;
	CUdeviceptr p;
	struct handle_memory *memory;
};

struct reservation {
	struct reservation *next;
	CUdeviceptr p;
	size_t n;
	void *map;
	size_t mapped;
};

static struct mapping *mappings;
static struct reservation *reservations;

int fake_vmm(void)
{
	const char *e = getenv("FAKE_VMM");
	return e == NULL || strcmp(e, "0") != 0;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t n,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CALL(cuMemCreate, INIT);
	if (flags != 0 || n % UNIT != 0 || prop->type != 1 || prop->location.id < 0 ||
		prop->location.id >= DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	CUdevice d = prop->location.id;
	if (!fake_take(d, n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct handle_memory *m = malloc(sizeof *m);
	*m = (struct handle_memory){n, d, 1};
	*out = (CUmemGenericAllocationHandle)m;
	return CUDA_SUCCESS;
}

static void drop(struct handle_memory *m)
{
	if (--m->refs > 0)
		return;
	fake_give(m->device, m->n);
	free(m);
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
	CALL(cuMemRelease, INIT);
	drop((struct handle_memory *)h);
	return CUDA_SUCCESS;
}

API CUresult cuMemAddressReserve(
	CUdeviceptr *out, size_t n, size_t align, CUdeviceptr hint, unsigned long long flags)
{
	CALL(cuMemAddressReserve, INIT);
	if (n == 0 || n % UNIT != 0 || (align != 0 && align != UNIT) || hint != 0 || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	void *p = mmap(NULL, n + UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct reservation *r = malloc(sizeof *r);
	*r = (struct reservation){
		reservations, ((CUdeviceptr)p + UNIT - 1) & ~(CUdeviceptr)(UNIT - 1), n, p, n + UNIT};
	reservations = r;
	*out = r->p;
	return CUDA_SUCCESS;
}

API CUresult cuMemAddressFree(CUdeviceptr p, size_t n)
{
	CALL(cuMemAddressFree, INIT);
	for (struct mapping *m = mappings; m != NULL; m = m->next)
		if (m->p >= p && m->p < p + n)
			return fake_illegal(CUDA_ERROR_INVALID_VALUE, "addresses freed that are mapped");
	for (struct reservation **at = &reservations; *at != NULL; at = &(*at)->next) {
		struct reservation *r = *at;
		if (r->p == p && r->n == n) {
			*at = r->next;
			munmap(r->map, r->mapped);
			free(r);
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static int reserved(CUdeviceptr p, size_t n)
{
	for (struct reservation *r = reservations; r != NULL; r = r->next)
		if (p >= r->p && p + n <= r->p + r->n)
			return 1;
	return 0;
}

API CUresult cuMemMap(CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle h,
	unsigned long long flags)
{
	CALL(cuMemMap, INIT);
	struct handle_memory *memory = (struct handle_memory *)h;
	if (offset != 0 || n != memory->n)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (flags != 0 || !reserved(p, n))
		return CUDA_ERROR_INVALID_VALUE;
	for (struct mapping *m = mappings; m != NULL; m = m->next)
		if (m->p < p + n && p < m->p + m->memory->n)
			return fake_illegal(CUDA_ERROR_INVALID_VALUE, "an address mapped twice");
	struct mapping *m = malloc(sizeof *m);
	*m = (struct mapping){mappings, p, memory};
	mappings = m;
	memory->refs++;
	return CUDA_SUCCESS;
}

// The piece that is mapped at an address, or NULL.
static struct mapping *at(CUdeviceptr p)
{
	struct mapping *m = mappings;
	while (m != NULL && m->p != p)
		m = m->next;
	return m;
}

// All of [p, p + n) has to be mapped, by whole pieces.
API CUresult cuMemSetAccess(CUdeviceptr p, size_t n, const CUmemAccessDesc *to, size_t count)
{
	CALL(cuMemSetAccess, INIT);
	int own = 0;
	for (CUdeviceptr q = p; q < p + n;) {
		struct mapping *m = at(q);
		if (m == NULL || q + m->memory->n > p + n)
			return CUDA_ERROR_INVALID_VALUE;
		for (size_t i = 0; i < count; i++)
			own |= to[i].location.id == m->memory->device;
		q += m->memory->n;
	}
	for (CUdeviceptr q = p; own && q < p + n; q += at(q)->memory->n) {
		struct mapping *m = at(q);
		if (fake_find(q) == NULL) {
			mprotect((void *)q, m->memory->n, PROT_READ | PROT_WRITE);
			fake_mapped(q, m->memory->n, m->memory->device);
		}
	}
	return CUDA_SUCCESS;
}

// It passes over what is not mapped, and does not wait for work.
API CUresult cuMemUnmap(CUdeviceptr p, size_t n)
{
	CALL(cuMemUnmap, INIT);
	for (struct mapping **next = &mappings; *next != NULL;) {
		struct mapping *m = *next;
		if (m->p + m->memory->n <= p || m->p >= p + n) {
			next = &m->next;
			continue;
		}
		if (m->p < p || m->p + m->memory->n > p + n)
			return CUDA_ERROR_INVALID_VALUE;
		*next = m->next;
		fake_release(m->p);
		mmap((void *)m->p, m->memory->n, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		drop(m->memory);
		free(m);
	}
	return CUDA_SUCCESS;
}
