// A CUDA driver for tests, without a device: the memory is the host's, streams are
// queues of work that is done when the test says so or when a call must wait for it,
// failures come on demand, and each call is checked for legality.
#ifndef FAKE_H
#define FAKE_H
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda_abi.h"

#define API __attribute__((visibility("default")))

enum {
	INVALID_CONTEXT = 201,
	PEER_ALREADY_ENABLED = 704,
	PEER_NOT_ENABLED = 705,
	CONTEXT_IS_DESTROYED = 709,
	INVALID_HANDLE = 400,
	ILLEGAL_STATE = 401,
	NOT_FOUND = 500,
	NOT_READY = 600,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURED_EVENT = 907,
	CAPTURE_WRONG_THREAD = 908,
};

enum { DEVICES = 2, CONTEXTS = 64, STACK = 16 };

struct CUctx_st {
	int alive, primary, refs;
	CUdevice device;
	uint64_t peers; // bit i: may reach the memory of context i of the table
};

// What has to be done before an item of a queue may be: stream's items up to seq.
struct mark {
	CUstream stream;
	uint64_t seq;
};

enum kind { WRITE, WAIT, RECORD, FREE };

struct item {
	struct item *next;
	enum kind kind;
	uint64_t seq;
	CUdeviceptr address; // WRITE, FREE
	size_t bytes;
	int byte, sparse; // sparse: a byte in each 64 KiB
	struct mark mark; // WAIT
};

struct CUstream_st {
	CUstream next;
	int alive, blocking, legacy;
	pthread_t owner; // of a per-thread default stream
	int per_thread;
	CUcontext context;
	struct item *head, **tail;
	uint64_t queued, done; // sequence numbers
	int capture, mode;     // CUstreamCaptureStatus; mode of the capture
	pthread_t capturer;
};

struct CUevent_st {
	int alive, captured;
	CUcontext context;
	struct mark *marks;
	int count;
};

extern __thread CUcontext fake_stack[STACK];
extern __thread int fake_depth, fake_mode;

// Each function of the driver begins so: the lock, the count, the failure on demand,
// and what every call needs. It ends the function when there is an error.
int fake_enter(const char *name, int needs);
void fake_leave(int *held);
enum { NOTHING, INIT, CONTEXT };
#define CALL(name, needs) \
	__attribute__((cleanup(fake_leave))) int fake_result = fake_enter(#name, needs); \
	if (fake_result != CUDA_SUCCESS) \
	return fake_result

// A call that a correct program never makes: counted, and told on standard error.
CUresult fake_illegal(CUresult e, const char *what);

CUcontext fake_current(void);
int fake_index(CUcontext c);
int fake_context_ok(CUcontext c);

// Calls that a capture forbids by the thread's mode; each capture that forbids it is spoiled.
int fake_forbidden(void);
int fake_capturing_in(CUcontext c);

// Does the work that is queued, with what it waits for.
void fake_drain(CUstream s);
void fake_drain_context(CUcontext c);
void fake_drain_all(void);
void fake_streams_end(CUcontext c);

// Memory: written by work, released with its context.
void fake_write(CUdeviceptr p, size_t n, int byte, int sparse);
void fake_release(CUdeviceptr p);
int fake_pinned(CUdeviceptr p, size_t n);  // whether it is page-locked memory of the host
int fake_reaches(CUdeviceptr p, size_t n); // whether a device reaches all of it
void fake_memory_end(CUcontext c);
CUresult fake_allocate(CUdeviceptr *out, size_t n);
// Bytes of a device's memory without an address; 0: it has no more.
int fake_take(CUdevice d, size_t n);
void fake_give(CUdevice d, size_t n);
// Where what is known of the pages is kept, if the range is one of a managed allocation, with
// that one's start and size; else NULL. It is freed with the memory.
void **fake_managed(CUdeviceptr p, size_t n, CUdeviceptr *start, size_t *size);
// By FAKE_MANAGED, 0: no managed memory, 1: it moves to a device as a whole when that has
// work, and takes no advice about devices, 2: both have it at once.
int fake_manages(void);
// By FAKE_VMM: whether there is virtual memory management.
int fake_vmm(void);
// All streams; and the one that a handle means in the current context, NULL for one that is
// none. To name such a one to fake_live_stream is illegal.
extern CUstream fake_streams;
CUstream fake_stream(CUstream s, int per_thread);
CUstream fake_live_stream(CUstream s, int per_thread);
struct item *fake_queue(CUstream s, enum kind kind);
// Pending writes to the range that nothing orders before the stream's next work.
int fake_pending(CUdeviceptr p, size_t n, CUstream s);

// What the test says.
API void fake_fail(const char *name, int nth, CUresult e); // the nth call of name from now
API void fake_complete(CUstream s);
API void fake_complete_all(void);
API CUresult fake_launch(CUdeviceptr p, size_t n, int byte, CUstream s); // work that writes
// The same, but of the range only a byte in each 64 KiB is written: page faults are dear.
API CUresult fake_touch(CUdeviceptr p, size_t n, int byte, CUstream s);
API int fake_busy(CUdeviceptr p, size_t n, CUstream s, int ordered); // see fake_pending
API unsigned long fake_calls(const char *name);
API unsigned long fake_illegals(void);
API size_t fake_used(CUdevice d);       // bytes of the device's memory
API CUmemoryPool fake_pool(CUdevice d); // the pool of a device that is not the default
API size_t fake_places(void);           // places that the last batch of prefetches was told
#endif
