// Device memory: the host's, handed out as the driver does. Below 1 MiB requests are cut
// from chunks of 2 MiB; larger ones are multiples of it.
#include <sys/mman.h>
#include "memory.h"

enum { ALIGN = 512 };
static const size_t chunk_size = 2u << 20, small = 1u << 20;

static struct memory *memories;
static size_t used[DEVICES];
static uint64_t ids;

static size_t total(void)
{
	const char *e = getenv("FAKE_MEMORY");
	return e != NULL && *e != 0 ? strtoull(e, NULL, 0) : 1ul << 30;
}

static size_t up(size_t n, size_t to) { return (n + to - 1) & ~(to - 1); }

struct memory *fake_find(CUdeviceptr p)
{
	for (struct memory *m = memories; m != NULL; m = m->next)
		if (m->how != CHUNK && p >= m->address && p < m->address + m->asked)
			return m;
	return NULL;
}

static struct memory *note(struct memory m)
{
	struct memory *n = malloc(sizeof *n);
	m.next = memories;
	m.id = ++ids;
	*n = m;
	return memories = n;
}

void fake_mapped(CUdeviceptr p, size_t n, CUdevice d)
{
	note((struct memory){.address = p, .asked = n, .how = MAPPED, .device = d});
}

// Pages of the host at a multiple of 2 MiB, charged to the device.
static struct memory *map(size_t n, enum how how)
{
	CUcontext c = fake_current();
	size_t size = up(n, chunk_size);
	if (n > total() || used[c->device] + size > total())
		return NULL;
	char *p = mmap(NULL, size + chunk_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	char *at = (char *)up((size_t)p, chunk_size);
	if (at > p)
		munmap(p, (size_t)(at - p));
	munmap(at + size, (size_t)(p + chunk_size - at));
	used[c->device] += size;
	return note((struct memory){.address = (CUdeviceptr)at,
		.asked = n,
		.size = size,
		.how = how,
		.context = c,
		.device = c->device});
}

static struct memory *cut(size_t n, enum how how)
{
	CUcontext c = fake_current();
	struct memory *chunk = memories;
	while (chunk != NULL &&
		!(chunk->how == CHUNK && chunk->context == c && chunk->cut + up(n, ALIGN) <= chunk_size))
		chunk = chunk->next;
	if (chunk == NULL)
		chunk = map(chunk_size, CHUNK);
	if (chunk == NULL)
		return NULL;
	struct memory *m = note((struct memory){.address = chunk->address + chunk->cut,
		.asked = n,
		.how = how,
		.context = c,
		.device = c->device,
		.chunk = chunk});
	chunk->cut += up(n, ALIGN);
	chunk->in_use++;
	return m;
}

static void unmap(struct memory *m)
{
	struct memory **at = &memories;
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	if (m->size != 0) {
		munmap((void *)m->address, m->size);
		used[m->device] -= m->size;
	}
	struct memory *chunk = m->chunk;
	free(m->pages);
	free(m);
	if (chunk != NULL && --chunk->in_use == 0)
		unmap(chunk);
}

void fake_memory_end(CUcontext c)
{
	for (int again = 1; again;) {
		again = 0;
		for (struct memory *m = memories; m != NULL && !again; m = m->next)
			if (m->context == c && m->how != CHUNK) {
				unmap(m);
				again = 1;
			}
	}
}

void fake_write(CUdeviceptr p, size_t n, int byte, int sparse)
{
	CUdeviceptr end = p;
	for (struct memory *m = fake_find(p); m != NULL && end < p + n;) {
		end = m->address + up(m->asked, ALIGN);
		m = m->how == MAPPED ? fake_find(end) : NULL; // work goes on in the next piece
	}
	if (end < p + n && !fake_pinned(p, n))
		fake_illegal(700, "work on memory that is gone");
	else if (sparse)
		for (size_t i = 0; i < n; i += 64 * 1024)
			((char *)p)[i] = (char)byte;
	else
		memset((void *)p, byte, n);
}

int fake_reaches(CUdeviceptr p, size_t n)
{
	struct memory *m = fake_find(p);
	if (m == NULL)
		return fake_pinned(p, n);
	CUdeviceptr end = m->address + m->asked;
	while (end < p + n && m->how == MAPPED && (m = fake_find(end)) != NULL)
		end = m->address + m->asked;
	return end >= p + n;
}

void fake_release(CUdeviceptr p)
{
	struct memory *m = fake_find(p);
	if (m != NULL)
		unmap(m);
}

size_t fake_used(CUdevice d) { return used[d]; }

int fake_take(CUdevice d, size_t n)
{
	if (used[d] + n > total())
		return 0;
	used[d] += n;
	return 1;
}

void fake_give(CUdevice d, size_t n) { used[d] -= n; }

static CUresult allocate(CUdeviceptr *out, size_t n, enum how how)
{
	if (out == NULL || n == 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct memory *m = n < small ? cut(n, how) : map(n, how);
	if (m == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = m->address;
	return CUDA_SUCCESS;
}

CUresult fake_allocate(CUdeviceptr *out, size_t n) { return allocate(out, n, PLAIN); }

API CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t n)
{
	CALL(cuMemAlloc_v2, CONTEXT);
	return fake_forbidden() ? CAPTURE_UNSUPPORTED : allocate(out, n, PLAIN);
}

API CUresult cuMemAllocManaged(CUdeviceptr *out, size_t n, unsigned flags)
{
	CALL(cuMemAllocManaged, CONTEXT);
	if (flags != 1 && flags != 2)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_manages() == 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	return fake_forbidden() ? CAPTURE_UNSUPPORTED : allocate(out, n, MANAGED);
}

void **fake_managed(CUdeviceptr p, size_t n, CUdeviceptr *start, size_t *size)
{
	struct memory *m = fake_find(p);
	if (m == NULL || m->how != MANAGED || n == 0 || n > m->address + m->asked - p)
		return NULL;
	*start = m->address;
	*size = m->asked;
	return &m->pages;
}

API CUresult cuMemAllocPitch_v2(
	CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
	CALL(cuMemAllocPitch_v2, CONTEXT);
	if (pitch == NULL || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = up(width, ALIGN);
	return fake_forbidden() ? CAPTURE_UNSUPPORTED : allocate(out, *pitch * height, PLAIN);
}

// The driver waits for everything before it takes memory back.
API CUresult cuMemFree_v2(CUdeviceptr p)
{
	CALL(cuMemFree_v2, INIT);
	if (p == 0)
		return CUDA_SUCCESS;
	if (fake_forbidden())
		return CAPTURE_UNSUPPORTED;
	struct memory *m = fake_find(p);
	if (m == NULL || m->address != p)
		return CUDA_ERROR_INVALID_VALUE;
	fake_drain_all();
	unmap(m);
	return CUDA_SUCCESS;
}

CUresult fake_allocate_async(CUdeviceptr *out, size_t n) { return allocate(out, n, ASYNC); }

uint64_t fake_async_bytes(CUdevice d)
{
	uint64_t n = 0;
	for (struct memory *m = memories; m != NULL; m = m->next)
		if (m->how == ASYNC && m->device == d)
			n += up(m->asked, ALIGN);
	return n;
}

API CUresult cuMemGetInfo_v2(size_t *free, size_t *all)
{
	CALL(cuMemGetInfo_v2, CONTEXT);
	if (free != NULL)
		*free = total() - used[fake_current()->device];
	if (all != NULL)
		*all = total();
	return CUDA_SUCCESS;
}

API CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice d)
{
	CALL(cuDeviceTotalMem_v2, INIT);
	if (out == NULL || d < 0 || d >= DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	*out = total();
	return CUDA_SUCCESS;
}

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
	CALL(cuMemGetAddressRange_v2, CONTEXT);
	struct memory *m = fake_find(p);
	if (m == NULL)
		return NOT_FOUND;
	if (base != NULL)
		*base = m->address;
	if (size != NULL)
		*size = m->asked;
	return CUDA_SUCCESS;
}

static CUresult attribute(void *out, int a, struct memory *m)
{
	switch (a) {
	case 1:
		*(CUcontext *)out = m->context;
		return CUDA_SUCCESS;
	case 2:
		*(unsigned *)out = 2; // device
		return CUDA_SUCCESS;
	case 6:
		*(int *)out = m->sync;
		return CUDA_SUCCESS;
	case 7:
		*(uint64_t *)out = m->id;
		return CUDA_SUCCESS;
	case 8:
		*(unsigned *)out = m->how == MANAGED;
		return CUDA_SUCCESS;
	case 9:
		*(int *)out = m->device;
		return CUDA_SUCCESS;
	case 11:
		*(CUdeviceptr *)out = m->address;
		return CUDA_SUCCESS;
	case 12:
		*(size_t *)out = m->asked;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuPointerSetAttribute(const void *value, int a, CUdeviceptr p)
{
	CALL(cuPointerSetAttribute, INIT);
	struct memory *m = fake_find(p);
	if (a != 6 || value == NULL || m == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	m->sync = *(const int *)value;
	return CUDA_SUCCESS;
}

API CUresult cuPointerGetAttribute(void *out, int a, CUdeviceptr p)
{
	CALL(cuPointerGetAttribute, INIT);
	struct memory *m = fake_find(p);
	return m == NULL || out == NULL ? CUDA_ERROR_INVALID_VALUE : attribute(out, a, m);
}

API CUresult cuPointerGetAttributes(unsigned n, int *a, void **out, CUdeviceptr p)
{
	CALL(cuPointerGetAttributes, INIT);
	struct memory *m = fake_find(p);
	for (unsigned i = 0; i < n; i++) // of memory that is none: zeros
		if (m == NULL)
			memset(out[i], 0, a[i] == 7 || a[i] == 11 || a[i] == 12 ? 8 : 4);
		else if (attribute(out[i], a[i], m) != CUDA_SUCCESS)
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

// What is copied does not matter here: the copy is at work on what it writes.
API CUresult cuMemcpyPeerAsync(
	CUdeviceptr to, CUcontext of_to, CUdeviceptr from, CUcontext of_from, size_t n, CUstream handle)
{
	CALL(cuMemcpyPeerAsync, CONTEXT);
	CUstream s = fake_stream(handle, 0);
	if (fake_find(to) == NULL || fake_find(from) == NULL || s == NULL || !fake_context_ok(of_to) ||
		!fake_context_ok(of_from))
		return CUDA_ERROR_INVALID_VALUE;
	struct item *i = fake_queue(s, WRITE);
	i->address = to;
	i->bytes = n;
	return CUDA_SUCCESS;
}

API CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char byte, size_t n, CUstream handle)
{
	CALL(cuMemsetD8Async, CONTEXT);
	CUstream s = fake_stream(handle, 0);
	if (fake_find(p) == NULL || s == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct item *i = fake_queue(s, WRITE);
	i->address = p;
	i->bytes = n;
	i->byte = byte;
	return CUDA_SUCCESS;
}
