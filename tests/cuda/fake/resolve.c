// cuGetProcAddress, as of 11.3 and of 12.0: by base name, version and flags.
#include "fake.h"

#define DECLARE(name, ...) CUresult name(__VA_ARGS__);
TA_CUDA_NEEDED(DECLARE)
TA_CUDA_NEWER(DECLARE)
TA_CUDA_HOOKED(DECLARE)
CUresult cuCtxDisablePeerAccess(CUcontext), cuDriverGetVersion(int *), cuDeviceGetCount(int *),
	cuCtxSetCurrent(CUcontext), cuStreamIsCapturing_ptsz(CUstream, int *);

API CUresult cuMemAlloc(unsigned *out, unsigned n)
{
	CALL(cuMemAlloc, CONTEXT);
	return CUDA_ERROR_OUT_OF_MEMORY; // nothing below 4 GiB
}

#define PLAIN(base, version, f) \
	{ \
		base, version, (void *)f, NULL \
	}
#define BOTH(base, version, f) \
	{ \
		base, version, (void *)f, (void *)f##_ptsz \
	}
static const struct {
	const char *name;
	int version;
	void *plain, *per_thread;
} table[] = {
	PLAIN("cuInit", 2000, cuInit),
	PLAIN("cuDriverGetVersion", 2020, cuDriverGetVersion),
	PLAIN("cuDeviceGetCount", 2000, cuDeviceGetCount),
	PLAIN("cuDeviceGet", 2000, cuDeviceGet),
	PLAIN("cuCtxCreate", 3020, cuCtxCreate_v2),
	PLAIN("cuCtxSetCurrent", 4000, cuCtxSetCurrent),
	PLAIN("cuCtxGetCurrent", 4000, cuCtxGetCurrent),
	PLAIN("cuCtxDestroy", 2000, cuCtxDestroy),
	PLAIN("cuCtxDestroy", 4000, cuCtxDestroy_v2),
	PLAIN("cuCtxSynchronize", 2000, cuCtxSynchronize),
	PLAIN("cuMemAlloc", 2000, cuMemAlloc),
	PLAIN("cuMemAlloc", 3020, cuMemAlloc_v2),
	PLAIN("cuMemFree", 3020, cuMemFree_v2),
	PLAIN("cuMemGetInfo", 3020, cuMemGetInfo_v2),
	PLAIN("cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2),
	PLAIN("cuMemGetAddressRange", 3020, cuMemGetAddressRange_v2),
	PLAIN("cuPointerGetAttribute", 4000, cuPointerGetAttribute),
	PLAIN("cuPointerGetAttributes", 7000, cuPointerGetAttributes),
	PLAIN("cuMemAllocPitch", 3020, cuMemAllocPitch_v2),
	PLAIN("cuMemAllocManaged", 6000, cuMemAllocManaged),
	BOTH("cuMemAllocAsync", 11020, cuMemAllocAsync),
	BOTH("cuMemAllocFromPoolAsync", 11020, cuMemAllocFromPoolAsync),
	BOTH("cuMemFreeAsync", 11020, cuMemFreeAsync),
	PLAIN("cuDeviceGetDefaultMemPool", 11020, cuDeviceGetDefaultMemPool),
	PLAIN("cuDeviceGetMemPool", 11020, cuDeviceGetMemPool),
	PLAIN("cuDeviceSetMemPool", 11020, cuDeviceSetMemPool),
	PLAIN("cuMemSetMemPool", 13000, cuMemSetMemPool),
	PLAIN("cuMemPoolTrimTo", 11020, cuMemPoolTrimTo),
	PLAIN("cuMemPoolGetAttribute", 11020, cuMemPoolGetAttribute),
	PLAIN("cuMemPoolSetAttribute", 11020, cuMemPoolSetAttribute),
	PLAIN("cuMemPoolSetAccess", 11020, cuMemPoolSetAccess),
	PLAIN("cuArrayCreate", 3020, cuArrayCreate_v2),
	PLAIN("cuArray3DCreate", 3020, cuArray3DCreate_v2),
	PLAIN("cuArrayDestroy", 2000, cuArrayDestroy),
	PLAIN("cuMipmappedArrayCreate", 5000, cuMipmappedArrayCreate),
	PLAIN("cuMipmappedArrayDestroy", 5000, cuMipmappedArrayDestroy),
	PLAIN("cuMemCreate", 10020, cuMemCreate),
	PLAIN("cuMemAddressReserve", 10020, cuMemAddressReserve),
	PLAIN("cuMemAddressFree", 10020, cuMemAddressFree),
	PLAIN("cuMemMap", 10020, cuMemMap),
	PLAIN("cuMemUnmap", 10020, cuMemUnmap),
	PLAIN("cuMemSetAccess", 10020, cuMemSetAccess),
	PLAIN("cuMemRelease", 10020, cuMemRelease),
	PLAIN("cuStreamCreate", 2000, cuStreamCreate),
	PLAIN("cuStreamDestroy", 2000, cuStreamDestroy),
	PLAIN("cuStreamDestroy", 4000, cuStreamDestroy_v2),
	BOTH("cuStreamBeginCapture", 10000, cuStreamBeginCapture),
	BOTH("cuStreamBeginCapture", 10010, cuStreamBeginCapture_v2),
	BOTH("cuStreamBeginCaptureToGraph", 12030, cuStreamBeginCaptureToGraph),
	BOTH("cuStreamEndCapture", 10000, cuStreamEndCapture),
	BOTH("cuStreamIsCapturing", 10000, cuStreamIsCapturing),
	PLAIN("cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain),
	PLAIN("cuDevicePrimaryCtxRelease", 7000, cuDevicePrimaryCtxRelease),
	PLAIN("cuDevicePrimaryCtxRelease", 11000, cuDevicePrimaryCtxRelease_v2),
	PLAIN("cuDevicePrimaryCtxReset", 7000, cuDevicePrimaryCtxReset),
	PLAIN("cuDevicePrimaryCtxReset", 11000, cuDevicePrimaryCtxReset_v2),
	PLAIN("cuCtxEnablePeerAccess", 4000, cuCtxEnablePeerAccess),
	PLAIN("cuCtxDisablePeerAccess", 4000, cuCtxDisablePeerAccess),
	PLAIN("cuIpcGetMemHandle", 4010, cuIpcGetMemHandle),
	PLAIN("cuIpcOpenMemHandle", 4010, cuIpcOpenMemHandle),
	PLAIN("cuIpcOpenMemHandle", 11000, cuIpcOpenMemHandle_v2),
	PLAIN("cuIpcCloseMemHandle", 4010, cuIpcCloseMemHandle),
	PLAIN("cuGetProcAddress", 11030, cuGetProcAddress),
	PLAIN("cuGetProcAddress", 12000, cuGetProcAddress_v2),
};

enum { FOUND, NO_SUCH, TOO_NEW };

// The newest form that the version has.
static int lookup(const char *name, void **out, int version, uint64_t flags)
{
	int status = NO_SUCH, best = 0;
	*out = NULL;
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		if (strcmp(table[i].name, name) != 0)
			continue;
		if (table[i].version > version) {
			status = status == FOUND ? FOUND : TOO_NEW;
		} else if (table[i].version > best) {
			best = table[i].version;
			status = FOUND;
			*out = flags & 2 && table[i].per_thread != NULL ? table[i].per_thread : table[i].plain;
		}
	}
	return status;
}

API CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	CALL(cuGetProcAddress, NOTHING);
	return lookup(name, out, version, flags) == FOUND ? CUDA_SUCCESS : NOT_FOUND;
}

API CUresult cuGetProcAddress_v2(
	const char *name, void **out, int version, uint64_t flags, int *status)
{
	CALL(cuGetProcAddress_v2, NOTHING);
	if (name == NULL || out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	int s = lookup(name, out, version, flags);
	if (status == NULL)
		return s == FOUND ? CUDA_SUCCESS : NOT_FOUND;
	*status = s;
	return CUDA_SUCCESS;
}
