// ta_cuda_region_begin and its like: regions of device memory, which can sleep.
#include <errno.h>
#include <string.h>
#include "boot.h"
#include "cuda_driver.h"
#include "exports.h"
#include "tieralloc.h"

enum { POOL_ENDS, POOL_BEGINS_REGION = 3 };

// The errno for a result, or 0.
static int error_of(CUresult e)
{
	switch (e) {
	case CUDA_SUCCESS:
		return 0;
	case CUDA_ERROR_INVALID_VALUE:
		return EINVAL;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return ENOMEM;
	case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
		return EBUSY;
	case CUDA_ERROR_NOT_SUPPORTED:
		return ENOTSUP;
	case CUDA_ERROR_INVALID_DEVICE:
	case CUDA_ERROR_NOT_INITIALIZED:
	case TA_CUDA_PASSED:
		return ENODEV;
	default:
		return EIO;
	}
}

// Serves a request about a region. Its name becomes the number of its pool, with a last byte that
// no graph's pool has. Returns 0, or -1 with an errno.
static int about(uint64_t op, int device, const char *name, uint64_t count)
{
	ta_cuda_request r;
	uint64_t id[2] = {0};
	size_t n = 0;
	while (name != NULL && n < sizeof id && name[n] != 0)
		n++;
	if (n == 0 || n == sizeof id)
		return errno = EINVAL, -1;
	if (!ta_cuda_serves(NULL) || device < 0)
		return errno = ENODEV, -1;
	memcpy(id, name, n);
	((unsigned char *)id)[sizeof id - 1] = 0xff;
	ta_cuda_ask(&r, op, NULL);
	r.Device = (uint64_t)device;
	r.Address = id[0];
	r.Bytes = id[1];
	r.Count = count;
	int e = error_of(ta_cuda_serve(&r, NULL, NULL, NULL));
	return e == 0 ? 0 : (errno = e, -1);
}

EXPORT int ta_cuda_region_begin(int device, const char *name)
{
	return about(TA_CUDA_OP_POOL, device, name, POOL_BEGINS_REGION);
}

EXPORT int ta_cuda_region_end(int device, const char *name)
{
	return about(TA_CUDA_OP_POOL, device, name, POOL_ENDS);
}

EXPORT int ta_cuda_sleep(int device, const char *name, int keep)
{
	return about(TA_CUDA_OP_SLEEP, device, name, keep != 0);
}

EXPORT int ta_cuda_wake(int device, const char *name)
{
	return about(TA_CUDA_OP_WAKE, device, name, 0);
}

void *ta_region_order(void *unused)
{
	ta_cuda_request r;
	int e = 0;
	while (ta_cuda_ask(&r, 0, NULL), ta_go_order_next((uintptr_t)&r, (uintptr_t)e))
		e = error_of(ta_cuda_serve(&r, NULL, NULL, NULL));
	return NULL;
}
