// ta_mm_*: managers that share a device's memory between instances. Package share has the
// accounts and decides; here the memory is had and given back, and instances are told.
#include <string.h>
#include "cuda_driver.h"
#include "mm.h"

_Static_assert(sizeof(ta_mm_info) == sizeof(struct ta_share_info), "filled in by package share");
_Static_assert(sizeof(ta_mm_chunking) == sizeof(struct ta_share_chunking), "filled in by package share");
_Static_assert(sizeof(ta_mm_request) == 32, "read by package share");
_Static_assert(TA_MM_DEVICE == TA_SHARE_DEVICE && TA_MM_PINNED == TA_SHARE_PINNED && TA_MM_MAPPED == TA_SHARE_MAPPED &&
	TA_MM_MANAGED == TA_SHARE_MANAGED, "kinds");

static uint64_t bits(double d)
{
	uint64_t u;
	memcpy(&u, &d, sizeof u);
	return u;
}

static double real(uint64_t u)
{
	double d;
	memcpy(&d, &u, sizeof d);
	return d;
}

// The device and its context of a manager: Value, Context.
static int ask_device(ta_mm *m, ta_share_call *c)
{
	*c = ta_share_about(TA_SHARE_OP_DEVICE, m, 0);
	return ta_share_ask(c);
}

// What is free of a context's device under the limits, and all of it.
static CUresult memory(CUcontext c, size_t *free, size_t *total)
{
	CUcontext before;
	CUresult e = ta_cu.cuCtxPushCurrent_v2(c);
	if (e != CUDA_SUCCESS)
		return e;
	e = ta_cuda_memory(free, total);
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e;
}

EXPORT ta_mm *ta_mm_create(int device, size_t total, const char *name)
{
	CUcontext context;
	size_t free;
	if (device < 0 || !ta_cuda_serves(NULL) || ta_cuda_primary(&context, device) != CUDA_SUCCESS)
		return errno = ENODEV, NULL;
	if (total == 0 && memory(context, &free, &total) != CUDA_SUCCESS)
		return errno = ENODEV, NULL;
	ta_share_call c = ta_share_about(TA_SHARE_OP_CREATE, NULL, 0);
	c.Bytes = total;
	c.Count = (uint64_t)device;
	c.Context = (uint64_t)context;
	c.Name = (uint64_t)name;
	return ta_share_ask(&c) == 0 ? (ta_mm *)c.Manager : NULL;
}

EXPORT int ta_mm_destroy(ta_mm *m)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_DESTROY, m, 0);
	return ta_share_ask(&c);
}

EXPORT int ta_mm_set_mode(ta_mm *m, int mode)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_MODE, m, 0);
	c.Count = (uint64_t)mode;
	return ta_share_ask(&c);
}

EXPORT int ta_mm_register(ta_mm *m, uint64_t instance, const char *name, const char *group, double proportion, ta_mm_evict evict, void *arg)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_REGISTER, m, instance);
	c.Name = (uint64_t)name;
	c.Group = (uint64_t)group;
	c.Proportion = bits(proportion);
	c.Evict = (uint64_t)evict;
	c.Arg = (uint64_t)arg;
	return ta_share_ask(&c);
}

EXPORT int ta_mm_unregister(ta_mm *m, uint64_t instance)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_UNREGISTER, m, instance);
	return ta_share_ask(&c);
}

EXPORT int ta_mm_set_manual(ta_mm *m, uint64_t instance, double proportion)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_MANUAL, m, instance);
	c.Proportion = bits(proportion);
	return ta_share_ask(&c);
}

EXPORT int ta_mm_set_auto(ta_mm *m, uint64_t instance)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_AUTO, m, instance);
	return ta_share_ask(&c);
}

EXPORT int ta_mm_set_group(ta_mm *m, uint64_t instance, const char *group)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_GROUP, m, instance);
	c.Group = (uint64_t)group;
	return ta_share_ask(&c);
}

EXPORT int ta_mm_pools(ta_mm *m, double *manual, double *automatic)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_POOLS, m, 0);
	int answer = ta_share_ask(&c);
	if (answer == 0 && manual != NULL)
		*manual = real(c.Value);
	if (answer == 0 && automatic != NULL)
		*automatic = real(c.Extra);
	return answer;
}

EXPORT int ta_mm_get(ta_mm *m, uint64_t instance, ta_mm_info *out)
{
	struct ta_share_info info;
	ta_share_call c = ta_share_about(TA_SHARE_OP_GET, m, instance);
	c.Address = (uint64_t)&info;
	if (out == NULL || out->size < sizeof out->size)
		return errno = EINVAL, -1;
	int answer = ta_share_ask(&c);
	if (answer == 0) {
		info.Size = sizeof info;
		memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
	}
	return answer;
}

int ta_mm_free_of(ta_mm *m, size_t *free)
{
	size_t total;
	ta_share_call c;
	if (*free != TA_MM_ASK)
		return 0;
	int answer = ask_device(m, &c);
	if (answer == 0 && (!ta_cuda_serves(NULL) || memory((CUcontext)c.Context, free, &total) != CUDA_SUCCESS))
		return errno = ENODEV, -1;
	return answer;
}

EXPORT int ta_mm_available(ta_mm *m, const char *group, size_t free, size_t *out)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_AVAILABLE, m, 0);
	if (out == NULL)
		return errno = EINVAL, -1;
	if (ta_mm_free_of(m, &free) != 0)
		return -1;
	c.Group = (uint64_t)group;
	c.Free = free;
	int answer = ta_share_ask(&c);
	if (answer >= 0)
		*out = c.Value;
	return answer;
}

EXPORT int ta_mm_chunk(ta_mm *m, const char *group, size_t free, const ta_mm_request *requests, size_t n, size_t runs, ta_mm_chunking *out)
{
	struct ta_share_chunking chunking = {0};
	ta_share_call c = ta_share_about(TA_SHARE_OP_CHUNK, m, 0);
	if (out == NULL || out->size < sizeof out->size || (requests == NULL && n != 0))
		return errno = EINVAL, -1;
	if (ta_mm_free_of(m, &free) != 0)
		return -1;
	c.Group = (uint64_t)group;
	c.Free = free;
	c.Address = (uint64_t)requests;
	c.Count = n;
	c.Bytes = runs;
	c.Value = (uint64_t)&chunking;
	int answer = ta_share_ask(&c);
	if (answer == 0 || errno != EINVAL)
		memcpy(out, &chunking, out->size < sizeof chunking ? out->size : sizeof chunking);
	return answer;
}

enum { HOST_PORTABLE = 1, HOST_MAPPED = 2 }; // CU_MEMHOSTALLOC_...

// Memory of a kind from wherever it comes, or NULL with errno.
static void *obtain(const ta_share_call *device, size_t n, int kind, void *stream)
{
	CUcontext before;
	void *p = NULL;
	switch (kind) {
	case TA_MM_DEVICE:
		return ta_cuda_malloc((ssize_t)n, (int)device->Value, stream);
	case TA_MM_MANAGED:
		return ta_managed_malloc(n, (int)device->Value);
	}
	if (ta_cu.cuCtxPushCurrent_v2((CUcontext)device->Context) != CUDA_SUCCESS)
		return errno = ENODEV, NULL;
	CUresult e = ta_cu.cuMemHostAlloc(&p, n, kind == TA_MM_MAPPED ? HOST_PORTABLE | HOST_MAPPED : HOST_PORTABLE);
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e == CUDA_SUCCESS ? p : (errno = ENOMEM, NULL);
}

// Whether a stream has done what it was given, or with wait when it has; the legacy one in
// the manager's context. One that is gone has when its context has; one that captures
// a graph has not, and must not be asked.
static int done(CUcontext context, uint64_t stream, int wait)
{
	CUcontext before;
	int capturing = 0, mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	if (ta_cu.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return 0;
	int relaxed = ta_cu.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
	CUresult e;
	if (stream == TA_SHARE_STREAM_GONE)
		e = ta_cu.cuCtxSynchronize();
	else if ((e = ta_cu.cuStreamIsCapturing((CUstream)stream, &capturing)) == CUDA_SUCCESS && !capturing)
		e = wait ? ta_cu.cuStreamSynchronize((CUstream)stream) : ta_cu.cuStreamQuery((CUstream)stream);
	if (relaxed)
		ta_cu.cuThreadExchangeStreamCaptureMode(&mode);
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e == CUDA_SUCCESS && !capturing;
}

static void give_back(const ta_share_call *device, void *p, uint64_t kind, void *stream)
{
	if (kind == TA_MM_DEVICE) {
		ta_cuda_free(p, 0, (int)device->Value, stream);
		return;
	}
	done((CUcontext)device->Context, (uint64_t)stream, 1);
	if (kind == TA_MM_MANAGED)
		ta_managed_free(p);
	else
		ta_cu.cuMemFreeHost(p);
}

EXPORT int ta_mm_free(ta_mm *m, void *p, void *stream)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_REMOVE, m, 0), device;
	if (p == NULL)
		return 0;
	c.Address = (uint64_t)p;
	if (ask_device(m, &device) != 0 || ta_share_ask(&c) != 0)
		return -1;
	give_back(&device, p, c.Kind, stream);
	return 0;
}

// Frees all that an instance has, or has it do so. Whether it has less now.
static int evict(ta_mm *m, const ta_share_call *victim)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_EVICTED, m, victim->Value);
	ta_mm_info after = {.size = sizeof after};
	if (ta_share_ask(&c) != 0)
		return 1; // it is gone meanwhile
	if (victim->Evict != 0)
		((ta_mm_evict)victim->Evict)(victim->Value, (void *)victim->Arg);
	else
		for (c = ta_share_about(TA_SHARE_OP_FIRST, m, victim->Value); ta_share_ask(&c) == 0;)
			ta_mm_free(m, (void *)c.Address, (void *)victim->Stream);
	return ta_mm_get(m, victim->Value, &after) != 0 || after.bytes_live < victim->Bytes;
}

// Has the one that was not used for longest give way, of those that are idle and were
// not asked before: used after *tried. Whether one did.
static int make_room(ta_mm *m, CUcontext context, uint64_t instance, int everywhere, uint64_t *tried)
{
	for (;;) {
		ta_share_call c = ta_share_about(TA_SHARE_OP_VICTIM, m, instance);
		c.Count = (uint64_t)everywhere;
		c.Extra = *tried;
		if (ta_share_ask(&c) != 0)
			return 0;
		*tried = c.Extra;
		if (done(context, c.Stream, 0) && evict(m, &c))
			return 1;
	}
}

static int told(uint64_t op, ta_mm *m, uint64_t instance, size_t bytes)
{
	ta_share_call c = ta_share_about(op, m, instance);
	c.Bytes = bytes;
	return ta_share_ask(&c);
}

EXPORT void *ta_mm_alloc(ta_mm *m, uint64_t instance, size_t bytes, int kind, void *stream)
{
	uint64_t tried = 0;
	ta_share_call device;
	if (!ta_cuda_serves(NULL))
		return errno = ENODEV, NULL;
	if (ask_device(m, &device) != 0)
		return NULL;
	for (;;) {
		ta_share_call c = ta_share_about(TA_SHARE_OP_CHARGE, m, instance);
		c.Bytes = bytes;
		c.Kind = (uint64_t)kind;
		int charged = ta_share_ask(&c) == 0;
		void *p = charged ? obtain(&device, bytes, kind, stream) : NULL;
		int why = errno;
		if (p != NULL) {
			c.Op = TA_SHARE_OP_ADD;
			c.Address = (uint64_t)p;
			c.Stream = (uint64_t)stream;
			if (ta_share_ask(&c) == 0)
				return p;
			why = ENOMEM; // no host memory for its entry
			give_back(&device, p, (uint64_t)kind, stream);
		}
		if (charged)
			told(TA_SHARE_OP_UNCHARGE, m, instance, bytes);
		int helps = !charged || kind == TA_MM_DEVICE || kind == TA_MM_MANAGED; // others have no host memory to give
		if (why == ENOMEM && p == NULL && helps && make_room(m, (CUcontext)device.Context, instance, charged, &tried))
			continue;
		if (why == ENOMEM)
			told(TA_SHARE_OP_REFUSED, m, instance, 0);
		return errno = why, NULL;
	}
}

EXPORT int ta_mm_use(ta_mm *m, uint64_t instance, void *stream)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_USE, m, instance);
	c.Stream = (uint64_t)stream;
	return ta_share_ask(&c);
}

EXPORT int ta_mm_charge(ta_mm *m, uint64_t instance, ssize_t bytes) { return told(TA_SHARE_OP_ACCOUNT, m, instance, (size_t)bytes); }

void ta_mm_stream_ends(CUstream s)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_STREAM_END, NULL, 0);
	c.Stream = (uint64_t)s;
	tag_share((uintptr_t)&c);
}
