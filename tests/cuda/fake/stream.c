// Streams and events.
#include "fake.h"

CUstream fake_streams;

static CUstream new_stream(CUcontext c, int blocking)
{
	CUstream s = calloc(1, sizeof *s);
	*s = (struct CUstream_st){.next = fake_streams, .alive = 1, .blocking = blocking, .context = c};
	s->tail = &s->head;
	return fake_streams = s;
}

// The stream without a handle of the current context: the legacy one, or the thread's.
static CUstream default_stream(int per_thread)
{
	CUcontext c = fake_current();
	for (CUstream s = fake_streams; s != NULL; s = s->next) {
		if (!s->alive || s->context != c)
			continue;
		if (per_thread ? s->per_thread && pthread_equal(s->owner, pthread_self()) : s->legacy)
			return s;
	}
	CUstream s = new_stream(c, 1);
	s->legacy = !per_thread;
	s->per_thread = per_thread;
	s->owner = pthread_self();
	return s;
}

CUstream fake_stream(CUstream handle, int per_thread)
{
	uintptr_t h = (uintptr_t)handle;
	if (h <= 2)
		return fake_current() != NULL ? default_stream(h == 2 || (h == 0 && per_thread)) : NULL;
	for (CUstream s = fake_streams; s != NULL; s = s->next)
		if (s == handle)
			return s->alive ? s : NULL;
	return NULL;
}

CUstream fake_live_stream(CUstream handle, int per_thread)
{
	CUstream s = fake_stream(handle, per_thread);
	if (s == NULL)
		fake_illegal(INVALID_HANDLE, "a stream that is none or was destroyed");
	return s;
}

static int is_done(struct mark m) { return m.stream->done >= m.seq; }

static void push(CUstream s, struct item *i)
{
	i->seq = ++s->queued;
	*s->tail = i;
	s->tail = &i->next;
}

static void wait_for(CUstream s, struct mark m)
{
	if (is_done(m) || m.stream == s)
		return;
	struct item *i = calloc(1, sizeof *i);
	i->kind = WAIT;
	i->mark = m;
	push(s, i);
}

// The legacy stream waits for the blocking ones of its context, and they for it.
static void implicit_waits(CUstream s)
{
	for (CUstream t = fake_streams; t != NULL; t = t->next)
		if (t != s && t->context == s->context &&
			(s->legacy ? t->blocking : s->blocking && t->legacy))
			wait_for(s, (struct mark){t, t->queued});
}

struct item *fake_queue(CUstream s, enum kind kind)
{
	implicit_waits(s);
	struct item *i = calloc(1, sizeof *i);
	i->kind = kind;
	push(s, i);
	return i;
}

// Up to an item and no further: what comes later may wait for the one that asks.
static void drain_to(CUstream s, uint64_t seq)
{
	while (s->head != NULL && s->head->seq <= seq) {
		struct item *i = s->head;
		if (i->kind == WAIT && !is_done(i->mark))
			drain_to(i->mark.stream, i->mark.seq);
		s->head = i->next;
		if (s->head == NULL)
			s->tail = &s->head;
		if (i->kind == WRITE)
			fake_write(i->address, i->bytes, i->byte, i->sparse);
		if (i->kind == FREE)
			fake_release(i->address);
		s->done = i->seq;
		free(i);
	}
}

void fake_drain(CUstream s) { drain_to(s, s->queued); }

void fake_drain_context(CUcontext c)
{
	for (CUstream s = fake_streams; s != NULL; s = s->next)
		if (s->context == c)
			fake_drain(s);
}

void fake_drain_all(void)
{
	for (CUstream s = fake_streams; s != NULL; s = s->next)
		fake_drain(s);
}

void fake_streams_end(CUcontext c)
{
	for (CUstream s = fake_streams; s != NULL; s = s->next)
		if (s->context == c)
			s->alive = s->capture = 0;
}

// Whether s waits for item m of another stream, itself or by what it waits for.
static int ordered_after(CUstream s, struct mark m, int depth)
{
	if (s == m.stream)
		return 1;
	for (struct item *i = s->head; i != NULL; i = i->next) {
		if (i->kind != WAIT)
			continue;
		if (i->mark.stream == m.stream && i->mark.seq >= m.seq)
			return 1;
		if (depth < 4 && i->mark.stream != m.stream && ordered_after(i->mark.stream, m, depth + 1))
			return 1;
	}
	return 0;
}

int fake_pending(CUdeviceptr p, size_t n, CUstream after)
{
	int found = 0;
	for (CUstream s = fake_streams; s != NULL; s = s->next)
		for (struct item *i = s->head; i != NULL; i = i->next)
			if (i->kind == WRITE && i->address < p + n && p < i->address + i->bytes)
				found += after == NULL || !ordered_after(after, (struct mark){s, i->seq}, 0);
	return found;
}

API CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
	CALL(cuStreamCreate, CONTEXT);
	*out = new_stream(fake_current(), flags == 0);
	return CUDA_SUCCESS;
}

API CUresult cuStreamGetCtx(CUstream handle, CUcontext *out)
{
	CALL(cuStreamGetCtx, CONTEXT);
	CUstream s = fake_stream(handle, 0);
	if (s == NULL)
		return INVALID_HANDLE;
	*out = s->context;
	return CUDA_SUCCESS;
}

// Work that was queued is still done, later.
static CUresult destroy(CUstream handle)
{
	CUstream s = fake_live_stream(handle, 0);
	if (s == NULL)
		return INVALID_HANDLE;
	s->alive = s->capture = 0;
	return CUDA_SUCCESS;
}

API CUresult cuStreamDestroy(CUstream s)
{
	CALL(cuStreamDestroy, INIT);
	return destroy(s);
}

API CUresult cuStreamDestroy_v2(CUstream s)
{
	CALL(cuStreamDestroy_v2, INIT);
	return destroy(s);
}

API CUresult cuStreamSynchronize(CUstream handle)
{
	CALL(cuStreamSynchronize, CONTEXT);
	CUstream s = fake_live_stream(handle, 0);
	if (s == NULL)
		return INVALID_HANDLE;
	if (s->capture || fake_forbidden())
		return CAPTURE_UNSUPPORTED;
	if (s->legacy)
		implicit_waits(s);
	fake_drain(s);
	return CUDA_SUCCESS;
}

API CUresult cuStreamQuery(CUstream handle)
{
	CALL(cuStreamQuery, CONTEXT);
	CUstream s = fake_live_stream(handle, 0);
	if (s == NULL)
		return INVALID_HANDLE;
	if (s->capture || fake_forbidden())
		return CAPTURE_UNSUPPORTED;
	return s->head == NULL ? CUDA_SUCCESS : NOT_READY;
}

API CUresult cuStreamWaitEvent(CUstream handle, CUevent e, unsigned flags)
{
	CALL(cuStreamWaitEvent, CONTEXT);
	CUstream s = fake_live_stream(handle, 0);
	if (s == NULL)
		return INVALID_HANDLE;
	if (!e->alive)
		return fake_illegal(INVALID_HANDLE, "wait for an event that was destroyed");
	for (int i = 0; i < e->count; i++)
		wait_for(s, e->marks[i]);
	return CUDA_SUCCESS;
}

static CUresult launch(CUdeviceptr p, size_t n, int byte, int sparse, CUstream handle)
{
	CUstream s = fake_live_stream(handle, 0);
	if (s == NULL)
		return INVALID_HANDLE;
	if (s->capture)
		return CUDA_SUCCESS; // a node of the graph
	struct item *i = fake_queue(s, WRITE);
	i->address = p;
	i->bytes = n;
	i->byte = byte;
	i->sparse = sparse;
	return CUDA_SUCCESS;
}

CUresult fake_launch(CUdeviceptr p, size_t n, int byte, CUstream handle)
{
	CALL(fake_launch, CONTEXT);
	return launch(p, n, byte, 0, handle);
}

CUresult fake_touch(CUdeviceptr p, size_t n, int byte, CUstream handle)
{
	CALL(fake_touch, CONTEXT);
	return launch(p, n, byte, 1, handle);
}

API CUresult cuEventCreate(CUevent *out, unsigned flags)
{
	CALL(cuEventCreate, CONTEXT);
	CUevent e = calloc(1, sizeof *e); // never given back, so that use after destroy is seen
	*e = (struct CUevent_st){.alive = 1, .context = fake_current()};
	*out = e;
	return CUDA_SUCCESS;
}

API CUresult cuEventDestroy_v2(CUevent e)
{
	CALL(cuEventDestroy_v2, INIT);
	if (!e->alive)
		return fake_illegal(INVALID_HANDLE, "an event is destroyed twice");
	e->alive = 0;
	return CUDA_SUCCESS;
}

static CUresult usable(CUevent e)
{
	if (!e->alive || !e->context->alive)
		return fake_illegal(INVALID_HANDLE, "an event that was destroyed, or its context");
	return CUDA_SUCCESS;
}

static void set_mark(CUevent e, CUstream s)
{
	e->marks = realloc(e->marks, sizeof *e->marks * (size_t)(e->count + 1));
	e->marks[e->count++] = (struct mark){s, s->queued};
}

API CUresult cuEventRecord(CUevent e, CUstream handle)
{
	CALL(cuEventRecord, CONTEXT);
	CUstream s = fake_live_stream(handle, 0);
	if (s == NULL || usable(e) != CUDA_SUCCESS)
		return INVALID_HANDLE;
	if (e->context != s->context)
		return fake_illegal(INVALID_HANDLE, "an event recorded on a stream of another context");
	e->captured = s->capture != 0;
	e->count = 0;
	if (!e->captured) {
		fake_queue(s, RECORD);
		set_mark(e, s);
	}
	return CUDA_SUCCESS;
}

API CUresult cuCtxRecordEvent(CUcontext c, CUevent e)
{
	CALL(cuCtxRecordEvent, INIT);
	if (!fake_context_ok(c) || usable(e) != CUDA_SUCCESS)
		return INVALID_CONTEXT;
	if (e->context != c)
		return fake_illegal(INVALID_HANDLE, "an event recorded for another context");
	if (fake_capturing_in(c))
		return CAPTURE_UNSUPPORTED;
	e->count = e->captured = 0;
	for (CUstream s = fake_streams; s != NULL; s = s->next)
		if (s->context == c)
			set_mark(e, s);
	return CUDA_SUCCESS;
}

API CUresult cuEventQuery(CUevent e)
{
	CALL(cuEventQuery, INIT);
	if (usable(e) != CUDA_SUCCESS)
		return INVALID_HANDLE;
	if (fake_forbidden())
		return CAPTURE_UNSUPPORTED;
	if (e->captured)
		return fake_illegal(CAPTURED_EVENT, "query of an event that was recorded in a capture");
	for (int i = 0; i < e->count; i++)
		if (!is_done(e->marks[i]))
			return NOT_READY;
	return CUDA_SUCCESS;
}

API CUresult cuEventSynchronize(CUevent e)
{
	CALL(cuEventSynchronize, INIT);
	if (usable(e) != CUDA_SUCCESS)
		return INVALID_HANDLE;
	if (fake_forbidden())
		return CAPTURE_UNSUPPORTED;
	for (int i = 0; i < e->count; i++)
		if (!is_done(e->marks[i]))
			drain_to(e->marks[i].stream, e->marks[i].seq);
	return CUDA_SUCCESS;
}
