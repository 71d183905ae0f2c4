// Memory of the driver's own, outside the device heap: pitched, managed, arrays, and memory without
// an address; cuda_async.c has stream-ordered memory. It counts against the caps. The heap makes
// room before the driver is called, and charges the memory until it is freed.
#include "cuda_driver.h"

// Serves a request for n bytes that the driver allocates by call. They are charged in the context
// accounts.
static CUresult foreign_on(
	CUcontext accounts, size_t n, int managed, CUcontext current, ta_cuda_call call, void *args)
{
	ta_cuda_request r;
	ta_cuda_ask(&r, TA_CUDA_OP_FOREIGN, accounts);
	r.Bytes = n;
	r.Count = (uint64_t)managed;
	return ta_cuda_serve(&r, current, call, args);
}

CUresult ta_cuda_foreign(size_t n, CUcontext current, ta_cuda_call call, void *args)
{
	return foreign_on(current, n, 0, current, call, args);
}

struct pitch_call {
	CUdeviceptr *out;
	size_t *pitch;
	size_t width, height;
	unsigned element;
};

static CUresult call_pitch(ta_cuda_request *r, void *args)
{
	struct pitch_call *a = args;
	CUresult e = ta_cu.cuMemAllocPitch_v2(a->out, a->pitch, a->width, a->height, a->element);
	if (e == CUDA_SUCCESS)
		r->Value = *a->out;
	return e;
}

// n rounded up to the driver's pitch of 512, times rows. If the product overflows, it is the
// largest number, and the driver will refuse the call.
static size_t rows_of(size_t width, size_t rows)
{
	const size_t pitch = 512;
	size_t n;
	if (width > SIZE_MAX - pitch ||
		__builtin_mul_overflow((width + pitch - 1) & ~(pitch - 1), rows, &n))
		return SIZE_MAX;
	return n;
}

EXPORT CUresult cuMemAllocPitch_v2(
	CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
	CUcontext current;
	if (!ta_cuda_serves(&current) || current == NULL || out == NULL)
		return TA_CUDA_PASS(cuMemAllocPitch_v2, out, pitch, width, height, element);
	struct pitch_call a = {out, pitch, width, height, element};
	return ta_cuda_foreign(rows_of(width, height), current, call_pitch, &a);
}

struct managed_call {
	CUdeviceptr *out;
	size_t n;
	unsigned flags;
};

static CUresult call_managed(ta_cuda_request *r, void *args)
{
	struct managed_call *a = args;
	CUresult e = ta_cu.cuMemAllocManaged(a->out, a->n, a->flags);
	if (e == CUDA_SUCCESS)
		r->Value = *a->out;
	return e;
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t n, unsigned flags)
{
	CUcontext current;
	if (!ta_cuda_serves(&current) || current == NULL || out == NULL)
		return TA_CUDA_PASS(cuMemAllocManaged, out, n, flags);
	struct managed_call a = {out, n, flags};
	return foreign_on(current, n, 1, current, call_managed, &a);
}

// The bytes of one channel of an element, or 0 for a packed or compressed format.
static size_t channel(unsigned format)
{
	switch (format) {
	case 0x01: // unsigned and signed integers of 8 bits
	case 0x08:
		return 1;
	case 0x02: // of 16 bits, and half
	case 0x09:
	case 0x10:
		return 2;
	case 0x03: // of 32 bits, and float
	case 0x0a:
	case 0x20:
		return 4;
	}
	return 0;
}

// The bytes of an array, or 0 if they are not known beforehand. A height or depth of 0 means that
// the array has one dimension less.
static size_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	size_t row, plane, n;
	if (d->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return 0;
	if (__builtin_mul_overflow(d->width, channel(d->format) * d->channels, &row))
		return 0;
	if (__builtin_mul_overflow(row, d->height != 0 ? d->height : 1, &plane) ||
		__builtin_mul_overflow(plane, d->depth != 0 ? d->depth : 1, &n))
		return 0;
	return n;
}

// The bytes of all levels of a mipmapped array. Each level has half the length of the one before in
// each dimension. Layers, and faces of a cube, keep their number.
static size_t levels_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	CUDA_ARRAY3D_DESCRIPTOR level = *d;
	int layers = (d->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
	size_t sum = 0;
	for (; levels > 0; levels--) {
		if (__builtin_add_overflow(sum, array_bytes(&level), &sum))
			return 0;
		if (level.width <= 1 && level.height <= 1 && (level.depth <= 1 || layers))
			break;
		level.width >>= level.width > 1;
		level.height >>= level.height > 1;
		level.depth >>= level.depth > 1 && !layers;
	}
	return sum;
}

// The three entry points that create arrays.
struct array_call {
	CUarray *out;
	CUmipmappedArray *levelled;
	const CUDA_ARRAY_DESCRIPTOR *plane;
	const CUDA_ARRAY3D_DESCRIPTOR *volume;
	unsigned levels;
};

static CUresult call_array(ta_cuda_request *r, void *args)
{
	struct array_call *a = args;
	CUresult e;
	if (a->levelled != NULL)
		e = TA_CUDA_PASS(cuMipmappedArrayCreate, a->levelled, a->volume, a->levels);
	else if (a->plane != NULL)
		e = TA_CUDA_PASS(cuArrayCreate_v2, a->out, a->plane);
	else
		e = TA_CUDA_PASS(cuArray3DCreate_v2, a->out, a->volume);
	if (e == CUDA_SUCCESS)
		r->Value = a->levelled != NULL ? (uint64_t)*a->levelled : (uint64_t)*a->out;
	return e;
}

// Serves the call, of n bytes. n is 0 if the number is unknown or wrong.
static CUresult array(struct array_call *a, size_t n)
{
	CUcontext current;
	ta_cuda_request none = {0};
	if (n == 0 || !ta_cuda_serves(&current) || current == NULL)
		return call_array(&none, a);
	return ta_cuda_foreign(n, current, call_array, a);
}

EXPORT CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
	if (out == NULL || d == NULL)
		return TA_CUDA_PASS(cuArrayCreate_v2, out, d);
	CUDA_ARRAY3D_DESCRIPTOR v = {d->width, d->height, 0, d->format, d->channels, 0};
	return array(&(struct array_call){.out = out, .plane = d}, array_bytes(&v));
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	if (out == NULL || d == NULL)
		return TA_CUDA_PASS(cuArray3DCreate_v2, out, d);
	return array(&(struct array_call){.out = out, .volume = d}, array_bytes(d));
}

EXPORT CUresult cuMipmappedArrayCreate(
	CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	if (out == NULL || d == NULL)
		return TA_CUDA_PASS(cuMipmappedArrayCreate, out, d, levels);
	return array(&(struct array_call){.levelled = out, .volume = d, .levels = levels},
		levels_bytes(d, levels));
}

// Frees an object by the driver's function that takes its handle. A handle is an address in the
// heap of the driver, so it is never the address of a block.
struct destroy_call {
	CUresult (*call)(uint64_t);
	uint64_t handle;
};

static CUresult call_destroy(ta_cuda_request *r, void *args)
{
	const struct destroy_call *d = args;
	(void)r;
	return d->call(d->handle);
}

static CUresult destroy(void *call, uint64_t handle)
{
	CUcontext current;
	struct destroy_call d = {(CUresult(*)(uint64_t))call, handle};
	if (call == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ta_cuda_serves(&current) || handle == 0)
		return d.call(handle);
	return ta_cuda_free_block(handle, current, call_destroy, &d);
}

EXPORT CUresult cuArrayDestroy(CUarray a)
{
	return destroy(TA_CUDA_REAL(cuArrayDestroy), (uint64_t)a);
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray a)
{
	return destroy(TA_CUDA_REAL(cuMipmappedArrayDestroy), (uint64_t)a);
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
	return destroy(TA_CUDA_REAL(cuMemRelease), h);
}

// A context of the device in which memory without an address is charged. The call itself needs no
// context.
static CUcontext context_on(CUdevice device, CUcontext current)
{
	ta_cuda_known known[TA_CUDA_CONTEXTS];
	CUdevice d;
	if (current != NULL && ta_cu.cuCtxGetDevice(&d) == CUDA_SUCCESS && d == device)
		return current;
	for (int i = ta_cuda_contexts(known) - 1; i >= 0; i--)
		if (known[i].device == device)
			return known[i].context;
	return NULL;
}

struct create_call {
	CUmemGenericAllocationHandle *out;
	size_t n;
	const CUmemAllocationProp *prop;
	unsigned long long flags;
};

static CUresult call_create(ta_cuda_request *r, void *args)
{
	struct create_call *a = args;
	CUresult e = ta_cu.cuMemCreate(a->out, a->n, a->prop, a->flags);
	if (e == CUDA_SUCCESS)
		r->Value = *a->out;
	return e;
}

// Memory is charged from its creation to its first release, or to the end of the context in which
// it is charged. Mappings of it are not counted.
EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t n,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUcontext current = NULL, on = NULL;
	struct create_call a = {out, n, prop, flags};
	if (ta_cuda_serves(&current) && out != NULL && prop != NULL && n != 0 &&
		prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		on = context_on(prop->location.id, current);
	return on != NULL ? foreign_on(on, n, 0, current, call_create, &a) :
						TA_CUDA_PASS(cuMemCreate, out, n, prop, flags);
}
