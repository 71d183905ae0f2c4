// The blocks of memory managers: this file allocates and frees them, and evicts instances. Package
// manager keeps the accounts and chooses the instance.
#include "cuda_driver.h"
#include "manager.h"

enum { HOST_PORTABLE = 1, HOST_MAPPED = 2 }; // CU_MEMHOSTALLOC_...

// The library's own calls belong to no graph that is being captured, and must not spoil one.
// Returns whether the caller must undo that.
static int relax(int *mode)
{
	*mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	return ta_cu.cuThreadExchangeStreamCaptureMode(mode) == CUDA_SUCCESS;
}

static void undo(int relaxed, int *mode)
{
	if (relaxed)
		ta_cu.cuThreadExchangeStreamCaptureMode(mode);
}

// Allocates memory of a kind. Returns NULL with errno.
static void *obtain_relaxed(const ta_manager_call *device, size_t n, int kind, void *stream)
{
	CUcontext before;
	void *p = NULL;
	switch (kind) {
	case TA_MM_DEVICE:
		return ta_cuda_malloc((ssize_t)n, (int)device->Device, stream);
	case TA_MM_MANAGED:
		return ta_managed_malloc(n, (int)device->Device);
	}
	if (ta_cu.cuCtxPushCurrent_v2((CUcontext)device->Context) != CUDA_SUCCESS)
		return errno = ENODEV, NULL;
	CUresult e = ta_cu.cuMemHostAlloc(
		&p, n, kind == TA_MM_MAPPED ? HOST_PORTABLE | HOST_MAPPED : HOST_PORTABLE);
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e == CUDA_SUCCESS ? p : (errno = ENOMEM, NULL);
}

static void *obtain(const ta_manager_call *device, size_t n, int kind, void *stream)
{
	int mode, relaxed = relax(&mode);
	void *p = obtain_relaxed(device, n, kind, stream);
	int why = errno;
	undo(relaxed, &mode);
	return errno = why, p;
}

// Whether a stream has finished its work; with wait, waits until it has. The legacy stream is that
// of the manager's context. A stream that was destroyed has finished when its context has. A stream
// that captures a graph has not, and must not be queried.
static int done(CUcontext context, uint64_t stream, int wait)
{
	CUcontext before;
	int capturing = 0, mode;
	if (ta_cu.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return 0;
	int relaxed = relax(&mode);
	CUresult e;
	if (stream == TA_MANAGER_STREAM_GONE)
		e = ta_cu.cuCtxSynchronize();
	else if ((e = ta_cu.cuStreamIsCapturing((CUstream)stream, &capturing)) == CUDA_SUCCESS &&
		!capturing)
		e = wait ? ta_cu.cuStreamSynchronize((CUstream)stream) :
				   ta_cu.cuStreamQuery((CUstream)stream);
	undo(relaxed, &mode);
	ta_cu.cuCtxPopCurrent_v2(&before);
	return e == CUDA_SUCCESS && !capturing;
}

static void give_back(const ta_manager_call *device, void *p, uint64_t kind, void *stream)
{
	if (kind == TA_MM_DEVICE) {
		ta_cuda_free(p, 0, (int)device->Device, stream);
		return;
	}
	int mode;
	done((CUcontext)device->Context, (uint64_t)stream, 1);
	int relaxed = relax(&mode);
	if (kind == TA_MM_MANAGED)
		ta_managed_free(p);
	else
		ta_cu.cuMemFreeHost(p);
	undo(relaxed, &mode);
}

// Makes a block that is about to be freed on one stream wait for another stream's work, too.
static void also_after(const ta_manager_call *device, void *p, uint64_t kind, uint64_t stream)
{
	CUcontext context = (CUcontext)device->Context, before;
	if (kind != TA_MM_DEVICE)
		done(context, stream, 1);
	else if (ta_cu.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {
		ta_cuda_record_stream(p, (void *)stream);
		ta_cu.cuCtxPopCurrent_v2(&before);
	}
}

// Frees a block. idle: the work of its instance has finished on the stream that it used last.
static int free_block(ta_mm *m, void *p, void *stream, int idle)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_REMOVE, m, 0), device;
	if (p == NULL)
		return 0;
	c.Address = (uint64_t)p;
	if (ta_mm_device(m, &device) != 0 || ta_manager_ask(&c) != 0)
		return -1;
	if (!idle && c.Stream != (uint64_t)stream && c.Stream != TA_MANAGER_STREAM_GONE)
		also_after(&device, p, c.Kind, c.Stream);
	give_back(&device, p, c.Kind, stream);
	return 0;
}

EXPORT int ta_mm_free(ta_mm *m, void *p, void *stream) { return free_block(m, p, stream, 0); }

// Frees the blocks of an instance, in the order of the streams that they were allocated for. The
// instance is idle on the stream that it used last. Stops when it is at work again.
static void deprive(ta_mm *m, CUcontext context, const ta_manager_call *candidate)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_FIRST, m, candidate->Found);
	c.After = candidate->After;
	while (ta_manager_ask(&c) == 0) {
		if (c.Stream == TA_MANAGER_STREAM_GONE && !done(context, c.Stream, 1))
			return;
		free_block(
			m, (void *)c.Address, c.Stream == TA_MANAGER_STREAM_GONE ? NULL : (void *)c.Stream, 1);
	}
}

// Set while the thread is in a ta_mm_evict of the program.
static TLS int asking;

// Frees all that an instance has, or calls its ta_mm_evict. Returns whether it has less now.
static int evict(ta_mm *m, CUcontext context, const ta_manager_call *candidate)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_EVICTED, m, candidate->Found);
	ta_mm_info after = {.size = sizeof after};
	if (ta_manager_ask(&c) != 0)
		return 1; // it has been removed meanwhile
	if (candidate->Evict != 0) {
		asking = 1;
		((ta_mm_evict)candidate->Evict)(candidate->Found, (void *)candidate->Arg);
		asking = 0;
	} else
		deprive(m, context, candidate);
	return ta_mm_get(m, candidate->Found, &after) != 0 || after.bytes_live < candidate->FoundBytes;
}

// Evicts the least recently used idle instance that was not asked before, for so many bytes.
// Returns whether one has less than before.
static int give_way(ta_mm *m, CUcontext context, uint64_t instance, uint64_t bytes, int everywhere,
	ta_mm_asked *asked)
{
	if (asking)
		return 0;
	for (;;) {
		ta_manager_call c = ta_manager_about(TA_MANAGER_OP_CANDIDATE, m, instance);
		c.Bytes = bytes;
		c.Everywhere = (uint64_t)everywhere;
		c.After = asked->after;
		c.Until = asked->until;
		if (ta_manager_ask(&c) != 0)
			return 0;
		*asked = (ta_mm_asked){c.After, c.Until};
		if (done(context, c.Stream, 0) && evict((ta_mm *)c.FoundManager, context, &c))
			return 1;
	}
}

static int make_room(
	ta_mm *m, CUcontext context, const ta_manager_call *charge, int everywhere, ta_mm_asked *asked)
{
	size_t free, total;
	if (everywhere && ta_mm_memory(context, &free, &total) == CUDA_SUCCESS && charge->Bytes > total)
		return 0;
	return give_way(m, context, charge->Instance, charge->Bytes, everywhere, asked);
}

EXPORT int ta_mm_ask_idle(ta_mm *m, uint64_t instance, int everywhere, ta_mm_asked *asked)
{
	ta_manager_call device;
	if (asked == NULL)
		return errno = EINVAL, -1;
	if (!ta_cuda_serves(NULL))
		return errno = ENODEV, -1;
	if (ta_mm_device(m, &device) != 0)
		return -1;
	return give_way(m, (CUcontext)device.Context, instance, 0, everywhere != 0, asked);
}

static int told(uint64_t op, ta_mm *m, uint64_t instance, size_t bytes)
{
	ta_manager_call c = ta_manager_about(op, m, instance);
	c.Bytes = bytes;
	return ta_manager_ask(&c);
}

void *ta_mm_get_block(
	ta_mm *m, uint64_t instance, size_t bytes, int kind, void *stream, uint64_t round)
{
	ta_mm_asked asked = {0};
	ta_manager_call device;
	if (!ta_cuda_serves(NULL))
		return errno = ENODEV, NULL;
	if (ta_mm_device(m, &device) != 0)
		return NULL;
	for (;;) {
		ta_manager_call c = ta_manager_about(TA_MANAGER_OP_CHARGE, m, instance);
		c.Bytes = bytes;
		c.Kind = (uint64_t)kind;
		int charged = ta_manager_ask(&c) == 0;
		void *p = charged ? obtain(&device, bytes, kind, stream) : NULL;
		int why = errno;
		if (p != NULL) {
			c.Op = TA_MANAGER_OP_ADD;
			c.Address = (uint64_t)p;
			c.Stream = (uint64_t)stream;
			c.Round = round;
			if (ta_manager_ask(&c) == 0)
				return p;
			why = ENOMEM; // no host memory for its entry
			give_back(&device, p, (uint64_t)kind, stream);
		}
		if (charged)
			told(TA_MANAGER_OP_UNCHARGE, m, instance, bytes);
		// others have no host memory to give
		int helps = !charged || kind == TA_MM_DEVICE || kind == TA_MM_MANAGED;
		if (why == ENOMEM && p == NULL && helps &&
			make_room(m, (CUcontext)device.Context, &c, charged, &asked))
			continue;
		if (why == ENOMEM)
			told(TA_MANAGER_OP_REFUSED, m, instance, 0);
		return errno = why, NULL;
	}
}

EXPORT void *ta_mm_alloc(ta_mm *m, uint64_t instance, size_t bytes, int kind, void *stream)
{
	return ta_mm_get_block(m, instance, bytes, kind, stream, 0);
}
