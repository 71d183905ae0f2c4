// ta_cuda_region_begin and its like: regions of device memory, which can sleep.
#include <errno.h>
#include <string.h>
#include "cuda_driver.h"
#include "exports.h"
#include "tieralloc.h"

enum { POOL_ENDS, POOL_BEGINS_REGION = 3 };

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
	switch (ta_cuda_serve(&r, NULL, NULL, NULL)) {
	case CUDA_SUCCESS:
		return 0;
	case CUDA_ERROR_INVALID_VALUE:
		return errno = EINVAL, -1;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return errno = ENOMEM, -1;
	case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
		return errno = EBUSY, -1;
	case CUDA_ERROR_NOT_SUPPORTED:
		return errno = ENOTSUP, -1;
	case CUDA_ERROR_INVALID_DEVICE:
	case CUDA_ERROR_NOT_INITIALIZED:
	case TA_CUDA_PASSED:
		return errno = ENODEV, -1;
	default:
		return errno = EIO, -1;
	}
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
