// Captures of graphs, which forbid other calls or are spoiled by them.
#include "fake.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };

// A capture in global mode forbids unsafe calls to every thread that is not relaxed, one
// in thread-local mode to its own thread.
int fake_forbidden(void)
{
	int forbidden = 0;
	if (fake_mode == RELAXED)
		return 0;
	for (CUstream s = fake_streams; s != NULL; s = s->next) {
		int own = pthread_equal(s->capturer, pthread_self());
		if (s->capture && (own ? s->mode != RELAXED : s->mode == GLOBAL && fake_mode == GLOBAL))
			forbidden = s->capture = 2;
	}
	return forbidden;
}

int fake_capturing_in(CUcontext c)
{
	int found = 0;
	for (CUstream s = fake_streams; s != NULL; s = s->next)
		if (s->context == c && s->capture)
			found = s->capture = 2;
	return found;
}

static CUresult begin(CUstream handle, int mode, int per_thread)
{
	CUstream s = fake_live_stream(handle, per_thread);
	if (s == NULL)
		return INVALID_HANDLE;
	if (s->legacy)
		return CAPTURE_UNSUPPORTED;
	if (s->capture)
		return ILLEGAL_STATE;
	s->capture = 1;
	s->mode = mode;
	s->capturer = pthread_self();
	return CUDA_SUCCESS;
}

static CUresult end(CUstream handle, CUgraph *out, int per_thread)
{
	CUstream s = fake_live_stream(handle, per_thread);
	if (s == NULL)
		return INVALID_HANDLE;
	if (!s->capture)
		return ILLEGAL_STATE;
	if (s->mode != RELAXED && !pthread_equal(s->capturer, pthread_self()))
		return CAPTURE_WRONG_THREAD;
	int was = s->capture;
	s->capture = 0;
	*out = was == 1 ? malloc(1) : NULL;
	return was == 1 ? CUDA_SUCCESS : CAPTURE_INVALIDATED;
}

#define CAPTURE(suffix, per_thread) \
	API CUresult cuStreamBeginCapture##suffix(CUstream s) \
	{ \
		CALL(cuStreamBeginCapture##suffix, CONTEXT); \
		return begin(s, GLOBAL, per_thread); \
	} \
	API CUresult cuStreamBeginCapture_v2##suffix(CUstream s, int mode) \
	{ \
		CALL(cuStreamBeginCapture_v2##suffix, CONTEXT); \
		return begin(s, mode, per_thread); \
	} \
	API CUresult cuStreamBeginCaptureToGraph##suffix( \
		CUstream s, CUgraph g, const void *nodes, const void *edges, size_t n, int mode) \
	{ \
		CALL(cuStreamBeginCaptureToGraph##suffix, CONTEXT); \
		return g == NULL ? CUDA_ERROR_INVALID_VALUE : begin(s, mode, per_thread); \
	} \
	API CUresult cuStreamEndCapture##suffix(CUstream s, CUgraph *out) \
	{ \
		CALL(cuStreamEndCapture##suffix, CONTEXT); \
		return end(s, out, per_thread); \
	} \
	API CUresult cuStreamIsCapturing##suffix(CUstream s, int *out) \
	{ \
		CALL(cuStreamIsCapturing##suffix, CONTEXT); \
		CUstream real = fake_live_stream(s, per_thread); \
		*out = real != NULL ? real->capture : 0; \
		return real != NULL ? CUDA_SUCCESS : INVALID_HANDLE; \
	}
CAPTURE(, 0)
CAPTURE(_ptsz, 1)

API CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	CALL(cuThreadExchangeStreamCaptureMode, NOTHING);
	int was = fake_mode;
	fake_mode = *mode;
	*mode = was;
	return CUDA_SUCCESS;
}
