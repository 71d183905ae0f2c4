// Captures of graphs: the device heap must know when one begins and when the last one has ended.
#include "cuda_driver.h"
#include "boot.h"

// The streams with a capture that has not ended. key, never 0, distinguishes the default streams of
// threads, which share a handle.
enum { CAPTURES = 64 };
static struct capture {
	uint64_t key;
	CUcontext context;
} captures[CAPTURES];

static uint64_t key_of(CUstream s)
{
	if (s == (CUstream)CU_STREAM_PER_THREAD)
		return (uint64_t)ta_token();
	return s != NULL ? (uint64_t)s : CU_STREAM_LEGACY;
}

// The captures that have begun and not ended, or more. While there are none, no stream captures.
static uint64_t under_way;

int ta_cuda_captures(CUstream s)
{
	int capture = CU_STREAM_CAPTURE_STATUS_NONE;
	return __atomic_load_n(&under_way, __ATOMIC_ACQUIRE) != 0 &&
		(ta_cu.cuStreamIsCapturing(s, &capture) != CUDA_SUCCESS ||
			capture != CU_STREAM_CAPTURE_STATUS_NONE);
}

static void tell(CUcontext c, CUstream s, uint64_t begins)
{
	ta_cuda_request r;
	__atomic_add_fetch(&under_way, begins != 0 ? 1 : (uint64_t)-1, __ATOMIC_ACQ_REL);
	ta_cuda_ask(&r, TA_CUDA_OP_CAPTURE, c);
	r.Stream = (uint64_t)s;
	r.Count = begins;
	ta_cuda_serve(&r, NULL, NULL, NULL);
}

// Takes an entry for the stream's capture. If no entry is left, the heap learns of the capture, but
// not of its end. Then frees are held permanently, which is safe.
static struct capture *begin(CUstream s, CUcontext c)
{
	uint64_t key = key_of(s);
	for (int i = 0; i < CAPTURES; i++) {
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(
				&captures[i].key, &none, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			captures[i].context = c;
			return &captures[i];
		}
	}
	return NULL;
}

// Clears the entry if it still has the key, and tells the heap.
static void end(struct capture *p, uint64_t key, CUstream s)
{
	CUcontext c = p->context;
	if (key != 0 &&
		__atomic_compare_exchange_n(&p->key, &key, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		tell(c, s, 0);
}

void ta_cuda_capture_gone(CUstream s)
{
	uint64_t key = key_of(s);
	for (int i = 0; i < CAPTURES; i++)
		if (__atomic_load_n(&captures[i].key, __ATOMIC_ACQUIRE) == key)
			return end(&captures[i], key, s);
}

void ta_cuda_captures_gone(CUcontext c)
{
	for (int i = 0; i < CAPTURES; i++) {
		uint64_t key = __atomic_load_n(&captures[i].key, __ATOMIC_ACQUIRE);
		if (key != 0 && captures[i].context == c)
			end(&captures[i], key, (CUstream)key);
	}
}

// A call of one of the driver's entry points that begin a capture.
struct begin_call {
	CUresult (*plain)(CUstream);
	CUresult (*moded)(CUstream, int);
	CUresult (*graph)(CUstream, CUgraph, const void *, const void *, size_t, int);
	CUstream stream;
	int mode;
	CUgraph to;
	const void *nodes, *edges;
	size_t count;
};

static CUresult call_begin(const struct begin_call *b)
{
	if (b->plain != NULL)
		return b->plain(b->stream);
	if (b->moded != NULL)
		return b->moded(b->stream, b->mode);
	if (b->graph != NULL)
		return b->graph(b->stream, b->to, b->nodes, b->edges, b->count, b->mode);
	return CUDA_ERROR_NOT_INITIALIZED;
}

// The heap learns of the capture before the driver begins it: the heap's calls for other streams
// would invalidate a capture that it does not know of.
static CUresult begin_capture(const struct begin_call *b, CUstream s)
{
	CUcontext current, of = NULL;
	if (ta_cuda_serves(&current))
		of = ta_cuda_stream_context(s, current);
	if (of == NULL)
		return call_begin(b);
	struct capture *p = begin(s, of);
	tell(of, s, 1);
	CUresult e = call_begin(b);
	if (e != CUDA_SUCCESS && p != NULL)
		end(p, p->key, s);
	else if (e != CUDA_SUCCESS)
		tell(of, s, 0);
	return e;
}

EXPORT CUresult cuStreamBeginCapture(CUstream s)
{
	return begin_capture(
		&(struct begin_call){.plain = TA_CUDA_REAL(cuStreamBeginCapture), .stream = s}, s);
}

EXPORT CUresult cuStreamBeginCapture_ptsz(CUstream s)
{
	return begin_capture(
		&(struct begin_call){.plain = TA_CUDA_REAL(cuStreamBeginCapture_ptsz), .stream = s},
		ta_cuda_per_thread(s));
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream s, int mode)
{
	return begin_capture(
		&(struct begin_call){
			.moded = TA_CUDA_REAL(cuStreamBeginCapture_v2), .stream = s, .mode = mode},
		s);
}

EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream s, int mode)
{
	return begin_capture(
		&(struct begin_call){
			.moded = TA_CUDA_REAL(cuStreamBeginCapture_v2_ptsz), .stream = s, .mode = mode},
		ta_cuda_per_thread(s));
}

EXPORT CUresult cuStreamBeginCaptureToGraph(
	CUstream s, CUgraph to, const void *nodes, const void *edges, size_t n, int mode)
{
	return begin_capture(&(struct begin_call){NULL, NULL, TA_CUDA_REAL(cuStreamBeginCaptureToGraph),
							 s, mode, to, nodes, edges, n},
		s);
}

EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(
	CUstream s, CUgraph to, const void *nodes, const void *edges, size_t n, int mode)
{
	return begin_capture(
		&(struct begin_call){NULL, NULL, TA_CUDA_REAL(cuStreamBeginCaptureToGraph_ptsz), s, mode,
			to, nodes, edges, n},
		ta_cuda_per_thread(s));
}

// An invalidated capture ends with an error, but it ends. A capture that another thread has begun
// may continue. The state of the stream tells which.
static CUresult end_capture(
	CUresult (*call)(CUstream, CUgraph *), CUstream s, CUgraph *out, CUstream named)
{
	CUcontext current;
	int after = -1;
	if (call == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	CUresult e = call(s, out);
	if (ta_cuda_serves(&current) && ta_cu.cuStreamIsCapturing(named, &after) == CUDA_SUCCESS &&
		after == CU_STREAM_CAPTURE_STATUS_NONE)
		ta_cuda_capture_gone(named);
	return e;
}

EXPORT CUresult cuStreamEndCapture(CUstream s, CUgraph *out)
{
	return end_capture(TA_CUDA_REAL(cuStreamEndCapture), s, out, s);
}

EXPORT CUresult cuStreamEndCapture_ptsz(CUstream s, CUgraph *out)
{
	return end_capture(TA_CUDA_REAL(cuStreamEndCapture_ptsz), s, out, ta_cuda_per_thread(s));
}
