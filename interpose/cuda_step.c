// Executes the actions of the device heap. The heap (package cudahook) never calls the driver. Each
// step of a request ends with an action. This file executes the action without holding a lock of
// the library, and passes the result to the next step.
#include <errno.h>
#include <time.h>
#include "boot_python.h"
#include "cuda_driver.h"
#include "syscall.h"
#include "boot.h"
#include "exports.h"

// The state of the thread towards the driver while actions are executed. If known is set, context
// is the current one. pushed and relaxed must be undone.
struct stance {
	CUcontext context;
	int known, pushed, relaxed, mode;
};

// Restores the state in which the program left the thread.
static void leave(struct stance *s)
{
	CUcontext c;
	if (s->pushed)
		ta_cu.cuCtxPopCurrent_v2(&c);
	if (s->relaxed)
		ta_cu.cuThreadExchangeStreamCaptureMode(&s->mode);
	*s = (struct stance){0};
}

// Makes c current, and allows calls of the driver during a capture: the library's own calls belong
// to no graph.
static CUresult enter(struct stance *s, CUcontext c)
{
	if (!s->relaxed) {
		s->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
		s->relaxed = ta_cu.cuThreadExchangeStreamCaptureMode(&s->mode) == CUDA_SUCCESS;
	}
	if (!s->known) {
		CUresult e = ta_cu.cuCtxGetCurrent(&s->context);
		if (e != CUDA_SUCCESS)
			return e;
		s->known = 1;
	}
	if (c == NULL || c == s->context)
		return CUDA_SUCCESS;
	CUcontext before;
	if (s->pushed && ta_cu.cuCtxPopCurrent_v2(&before) == CUDA_SUCCESS) {
		s->pushed = 0;
		s->known = 0;
		return enter(s, c);
	}
	CUresult e = ta_cu.cuCtxPushCurrent_v2(c);
	if (e == CUDA_SUCCESS) {
		s->context = c;
		s->pushed = 1;
	}
	return e;
}

// Fills in the UUID and the PCI address of the device, if the driver answers.
static void identify(ta_cuda_request *r, CUdevice d)
{
	enum { PCI_BUS_ID = 33, PCI_DEVICE_ID = 34, PCI_DOMAIN_ID = 50 };
	uint64_t uuid[2] = {0};
	int domain, bus, slot;
	if (ta_cu.cuDeviceGetUuid_v2 != NULL && ta_cu.cuDeviceGetUuid_v2(uuid, d) == CUDA_SUCCESS) {
		r->UUID[0] = uuid[0];
		r->UUID[1] = uuid[1];
	}
	if (ta_cu.cuDeviceGetAttribute != NULL &&
		ta_cu.cuDeviceGetAttribute(&domain, PCI_DOMAIN_ID, d) == CUDA_SUCCESS &&
		ta_cu.cuDeviceGetAttribute(&bus, PCI_BUS_ID, d) == CUDA_SUCCESS &&
		ta_cu.cuDeviceGetAttribute(&slot, PCI_DEVICE_ID, d) == CUDA_SUCCESS)
		r->PCI = 1 + ((uint64_t)domain << 16 | (uint64_t)bus << 8 | (uint64_t)slot << 3);
}

static CUresult describe(ta_cuda_request *r)
{
	CUdevice d;
	size_t total;
	CUresult e = ta_cu.cuCtxGetDevice(&d);
	if (e == CUDA_SUCCESS)
		e = ta_cu.cuDeviceTotalMem_v2(&total, d);
	if (e != CUDA_SUCCESS)
		return e;
	ta_cuda_note((CUcontext)r->Context, d);
	r->Value = (uint64_t)d; // a CUdevice is the device's ordinal
	r->Extra = total;
	identify(r, d);
	return CUDA_SUCCESS;
}

static CUresult primary(ta_cuda_request *r)
{
	CUcontext c;
	CUresult e = ta_cuda_primary(&c, (int)r->Device);
	if (e == CUDA_SUCCESS)
		r->Value = (uint64_t)c;
	return e;
}

// Memory of the device, or of the host, which the device accesses over the bus. A device without
// concurrent access to managed memory takes no advice. Its pages move on demand, which is correct.
static CUresult map_managed(ta_cuda_request *r)
{
	enum { MANAGED_MEMORY = 83 };
	CUdeviceptr p;
	CUdevice d;
	int has;
	CUresult e = ta_cu.cuCtxGetDevice(&d);
	if (e != CUDA_SUCCESS)
		return e;
	if (ta_cu.cuDeviceGetAttribute != NULL &&
		ta_cu.cuDeviceGetAttribute(&has, MANAGED_MEMORY, d) == CUDA_SUCCESS && !has)
		return CUDA_ERROR_NOT_SUPPORTED;
	e = ta_cu.cuMemAllocManaged(&p, r->OnBytes, CU_MEM_ATTACH_GLOBAL);
	if (e != CUDA_SUCCESS)
		return e;
	ta_cu.cuMemAdvise(
		p, r->OnBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, r->PreferDevice ? d : CU_DEVICE_CPU);
	ta_cu.cuMemAdvise(p, r->OnBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, d);
	r->Value = p;
	return CUDA_SUCCESS;
}

static CUresult map(ta_cuda_request *r)
{
	CUdeviceptr p;
	CUresult e = ta_cu.cuMemAlloc_v2(&p, r->OnBytes);
	if (e == CUDA_SUCCESS)
		r->Value = p;
	return e;
}

// Only a wait by the host makes the zeros safe for all streams. The default stream would wait for
// other streams, and must not be used while one of them captures a graph.
static CUresult zero(ta_cuda_request *r)
{
	CUstream s;
	CUresult e = ta_cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
	if (e != CUDA_SUCCESS)
		return e;
	e = ta_cu.cuMemsetD8Async(r->OnAddress, 0, r->OnBytes, s);
	if (e == CUDA_SUCCESS)
		e = ta_cu.cuStreamSynchronize(s);
	ta_cu.cuStreamDestroy_v2(s);
	return e;
}

static CUresult record_context(ta_cuda_request *r)
{
	if (ta_cu.cuCtxRecordEvent == NULL)
		return CUDA_ERROR_NOT_SUPPORTED;
	return ta_cu.cuCtxRecordEvent((CUcontext)r->OnContext, (CUevent)r->OnEvent);
}

static CUresult event_create(ta_cuda_request *r)
{
	CUevent event;
	CUresult e = ta_cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (e == CUDA_SUCCESS)
		r->Value = (uint64_t)event;
	return e;
}

static CUresult info(ta_cuda_request *r)
{
	size_t free, total;
	CUresult e = ta_cu.cuMemGetInfo_v2(&free, &total);
	if (e == CUDA_SUCCESS) {
		r->Value = free;
		r->Extra = total;
	}
	return e;
}

// The context of an action: the request's, except for actions on all of a context.
static CUcontext context_of(ta_cuda_request *r, uint64_t act)
{
	switch (act) {
	case TA_CUDA_ACT_PRIMARY:
	case TA_CUDA_ACT_UNRESERVE:
		return NULL;
	case TA_CUDA_ACT_SYNCHRONIZE:
	case TA_CUDA_ACT_EVENT_RECORD_CONTEXT:
		return (CUcontext)r->OnContext;
	default:
		return (CUcontext)r->Context;
	}
}

static CUresult carry_out(ta_cuda_request *r, uint64_t act)
{
	switch (act) {
	case TA_CUDA_ACT_CONTEXT:
		return describe(r);
	case TA_CUDA_ACT_PRIMARY:
		return primary(r);
	case TA_CUDA_ACT_MAP:
		return map(r);
	case TA_CUDA_ACT_MAP_MANAGED:
		return map_managed(r);
	case TA_CUDA_ACT_UNMAP:
		return ta_cu.cuMemFree_v2(r->OnAddress);
	case TA_CUDA_ACT_RESERVE:
		return ta_cuda_reserve(r);
	case TA_CUDA_ACT_UNRESERVE:
		return ta_cuda_unreserve(r);
	case TA_CUDA_ACT_MAP_AT:
		return ta_cuda_map_at(r);
	case TA_CUDA_ACT_UNMAP_AT:
		return ta_cu.cuMemUnmap(r->OnAddress, r->OnBytes);
	case TA_CUDA_ACT_ACCESS:
		return ta_cuda_access(r);
	case TA_CUDA_ACT_SAVE:
		return ta_cuda_save(r);
	case TA_CUDA_ACT_RESTORE:
		return ta_cuda_restore(r);
	case TA_CUDA_ACT_FREE_HOST:
		return ta_cuda_free_host(r);
	case TA_CUDA_ACT_ZERO:
		return zero(r);
	case TA_CUDA_ACT_SYNCHRONIZE:
		return ta_cu.cuCtxSynchronize();
	case TA_CUDA_ACT_EVENT_CREATE:
		return event_create(r);
	case TA_CUDA_ACT_EVENT_RECORD:
		return ta_cu.cuEventRecord((CUevent)r->OnEvent, (CUstream)r->OnStream);
	case TA_CUDA_ACT_EVENT_RECORD_CONTEXT:
		return record_context(r);
	case TA_CUDA_ACT_EVENT_QUERY:
		return ta_cu.cuEventQuery((CUevent)r->OnEvent);
	case TA_CUDA_ACT_STREAM_WAIT:
		return ta_cu.cuStreamWaitEvent((CUstream)r->OnStream, (CUevent)r->OnEvent, 0);
	case TA_CUDA_ACT_INFO:
		return info(r);
	case TA_CUDA_ACT_YIELD:
		ta_sys4(SYS_nanosleep, (uintptr_t) & (struct timespec){.tv_nsec = 20000}, 0, 0, 0);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

// The coarse clock: decay and the throttle of devices need no finer one.
static uint64_t now(void) { return ta_clock(CLOCK_MONOTONIC_COARSE); }

// The compiler's memset is rep stos, which takes longer to start than this loop in total.
static inline void clear(ta_cuda_request *r)
{
	typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));
	enum { PAIRS = sizeof *r / sizeof(pair) };
	pair *p = (pair *)r;
#pragma GCC unroll 32
	for (int i = 0; i < PAIRS; i++)
		p[i] = (pair){0, 0};
	if (sizeof *r % sizeof(pair) != 0)
		((uint64_t *)r)[2 * PAIRS] = 0;
}

void ta_cuda_ask(ta_cuda_request *r, uint64_t op, CUcontext context)
{
	clear(r);
	r->Op = op;
	r->Token = ta_token();
	r->Context = (uint64_t)context;
	r->Now = now();
	if (UNLIKELY(ta_flags.CudaStacks)) {
		struct ta_python p = ta_python_here();
		r->Python = p.thread;
		r->PythonMinor = p.minor;
	}
}

// Continues a request of more than one step, beginning with its first action. A failed allocation
// leaves Value unchanged; the heap checks Result.
static NOINLINE CUresult go_on(
	ta_cuda_request *r, uint64_t act, CUcontext current, ta_cuda_call call, void *args)
{
	int saved = errno;
	struct stance s = {.context = current, .known = current != NULL};
	for (;; act = ta_go_cuda_step((uintptr_t)r)) {
		if (act == TA_CUDA_ACT_FORGET) {
			ta_sample_device(r);
			continue;
		}
		if (act == TA_CUDA_ACT_SAMPLE) {
			ta_sample_device(r);
			act = TA_CUDA_ACT_DONE;
		}
		if (act == TA_CUDA_ACT_DONE || act == TA_CUDA_ACT_PASS) {
			leave(&s);
			errno = saved;
			if (act == TA_CUDA_ACT_DONE)
				return (CUresult)r->Result;
			return call != NULL ? call(r, args) : TA_CUDA_PASSED;
		}
		if (act == TA_CUDA_ACT_DRIVER) {
			leave(&s);
			r->Result = (uint64_t)(call != NULL ? call(r, args) : CUDA_ERROR_NOT_SUPPORTED);
			continue;
		}
		CUresult e = enter(&s, context_of(r, act));
		r->Result = (uint64_t)(e == CUDA_SUCCESS ? carry_out(r, act) : e);
	}
}

CUresult ta_cuda_serve(ta_cuda_request *r, CUcontext current, ta_cuda_call call, void *args)
{
	uint64_t act = ta_go_cuda_step((uintptr_t)r);
	return LIKELY(act == TA_CUDA_ACT_DONE) ? (CUresult)r->Result :
											 go_on(r, act, current, call, args);
}
