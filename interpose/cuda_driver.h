// The CUDA part of interpose: the driver, and requests to the device heap.
#ifndef TA_CUDA_DRIVER_H
#define TA_CUDA_DRIVER_H
#include <stdint.h>
#include "cuda_abi.h"
#include "layout.h"
#include "libc_malloc.h"
#include "libc_symbol.h"

// The driver's own functions. A function that the driver lacks is NULL.
struct ta_cuda_driver {
#define TA_FIELD(name, ...) CUresult (*name)(__VA_ARGS__);
	TA_CUDA_NEEDED(TA_FIELD)
	TA_CUDA_NEWER(TA_FIELD)
	TA_CUDA_HOOKED(TA_FIELD)
#undef TA_FIELD
};
extern struct ta_cuda_driver ta_cu;

// Whether the program has loaded the driver. Then ta_cu is filled in.
int ta_cuda_find(void);

// Finds the driver, or loads it by its name. Functions that a program may call before all others
// use this.
void ta_cuda_load(void);

// dlsym that never returns the library's versions of functions.
static inline void *ta_dlsym(void *handle, const char *name)
{
	return ta_next()->dlsym(handle, name);
}

// The driver's function, or NULL.
#define TA_CUDA_REAL(name) (ta_cuda_find() ? ta_cu.name : NULL)

// Passes a call on to the driver. The result is what the program would get without the library.
#define TA_CUDA_PASS(name, ...) \
	(ta_cuda_find() && ta_cu.name != NULL ? ta_cu.name(__VA_ARGS__) : CUDA_ERROR_NOT_INITIALIZED)

// Whether calls are served: CUDA support is on, the driver is new enough, and this thread is not
// within a call that was passed on. Fills in the current context; current may be NULL.
int ta_cuda_serves(CUcontext *current);

// Set while a call is passed on to the CUDA runtime, which calls the driver for it.
extern TLS int ta_cuda_passing;

// Set by the library's cuMemAlloc and cuMemFree: the thread's call of the runtime has reached the
// library.
extern TLS int ta_cuda_reached;

// The result that the next call of these returns without doing anything else, so that the runtime
// learns of an error. CUDA_SUCCESS: the call is served.
extern TLS CUresult ta_cuda_answer;

static inline CUresult ta_cuda_answered(void)
{
	CUresult e = ta_cuda_answer;
	ta_cuda_reached = 1;
	if (UNLIKELY(e != CUDA_SUCCESS))
		ta_cuda_answer = CUDA_SUCCESS;
	return e;
}

// The stream that is meant by s at an entry point with per-thread default streams.
static inline CUstream ta_cuda_per_thread(CUstream s)
{
	return s == NULL ? (CUstream)CU_STREAM_PER_THREAD : s;
}

typedef struct ta_cuda_request ta_cuda_request;

// Fills in a request of the calling thread.
void ta_cuda_ask(ta_cuda_request *r, uint64_t op, CUcontext context);

// The inputs of hints and rules: the thread, and the caller.
static inline void ta_cuda_about(ta_cuda_request *r, void *caller)
{
	r->Allowed = ta_by_caller(caller);
	r->Hint = LIKELY(ta_self != &ta_heap_none) ? ta_self->Hint + UINT64_C(1) : 0;
}

// The context that a stream belongs to, or NULL if the driver knows no such stream. The answer for
// a default stream, or if the driver cannot answer, is the current context.
static inline CUcontext ta_cuda_stream_context(CUstream s, CUcontext current)
{
	CUcontext of;
	if ((uintptr_t)s <= CU_STREAM_PER_THREAD || ta_cu.cuStreamGetCtx == NULL)
		return current;
	CUresult e = ta_cu.cuStreamGetCtx(s, &of);
	if (e == CUDA_ERROR_INVALID_HANDLE)
		return NULL;
	return e == CUDA_SUCCESS ? of : current;
}

// Passes the call of the program to the driver. A new address goes into r->Value.
typedef CUresult (*ta_cuda_call)(ta_cuda_request *r, void *args);

// What ta_cuda_serve returns instead of a CUresult when there is no call to pass on.
enum { TA_CUDA_PASSED = -1 };

// Serves the request to its end. current is the current context, or NULL if unknown. call may be
// NULL.
CUresult ta_cuda_serve(ta_cuda_request *r, CUcontext current, ta_cuda_call call, void *args);

// The actions on reserved addresses.
CUresult ta_cuda_reserve(ta_cuda_request *r);
CUresult ta_cuda_unreserve(ta_cuda_request *r);
CUresult ta_cuda_map_at(ta_cuda_request *r);
CUresult ta_cuda_access(ta_cuda_request *r);
CUresult ta_cuda_save(ta_cuda_request *r);
CUresult ta_cuda_restore(ta_cuda_request *r);
CUresult ta_cuda_free_host(ta_cuda_request *r);

// An address that never has memory. The driver's answer for it is right for any part of a segment
// that is not a block.
enum { TA_CUDA_NOWHERE = 1 };

// Whether *p lies in a block of the library. Then r->Value is the start of the block, Extra its
// size and Number its number. *p changes if it lies in memory of the library, but in no block.
int ta_cuda_block(CUdeviceptr *p, ta_cuda_request *r);

// cuMemAlloc and cuMemFree by the heap; caller is the program's return address.
CUresult ta_cuda_alloc(
	CUdeviceptr *out, size_t n, CUcontext current, void *caller, ta_cuda_call call, void *args);
CUresult ta_cuda_free_block(CUdeviceptr p, CUcontext current, ta_cuda_call call, void *args);

// Serves a request for n bytes that the driver allocates by call. They are charged in the current
// context.
CUresult ta_cuda_foreign(size_t n, CUcontext current, ta_cuda_call call, void *args);

// Whether the stream captures a graph, or the driver refuses to tell.
int ta_cuda_captures(CUstream s);

// The free and the total memory of the current context's device, as the program is to see them.
CUresult ta_cuda_memory(size_t *free, size_t *total);

// The primary context of a device, retained.
CUresult ta_cuda_primary(CUcontext *out, int device);

// No context begins or ends while the lock is held.
void ta_cuda_lives_lock(void);
void ta_cuda_lives_unlock(void);

// Note that the captures in a context, or on a stream, have ended.
void ta_cuda_captures_gone(CUcontext c);
void ta_cuda_capture_gone(CUstream s);
// Tells managers that a stream is about to end. They do not query it any more.
void ta_mm_stream_ends(CUstream s);
// Tells managers that a context and their blocks in it have ended.
void ta_mm_context_gone(CUcontext c);

// The contexts that the heap knows, with their devices.
enum { TA_CUDA_CONTEXTS = 64 };
typedef struct {
	CUcontext context;
	CUdevice device;
} ta_cuda_known;
void ta_cuda_note(CUcontext c, CUdevice d);
void ta_cuda_forget(CUcontext c);
int ta_cuda_contexts(ta_cuda_known out[TA_CUDA_CONTEXTS]);

// The library's version of a function of the driver, or the function itself if there is none.
void *ta_cuda_substitute(void *function);

// The function of the CUDA runtime that a call from the address caller means by name, or NULL.
void *ta_cuda_runtime_symbol(const char *name, void *caller);

// A function in the object that contains the address or in its dependencies. NULL: there is none,
// or the address is in the program.
void *ta_cuda_symbol_beside(void *address, const char *name);

#endif
