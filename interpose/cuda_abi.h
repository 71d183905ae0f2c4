// The part of the CUDA driver's binary interface that the library uses. It was written from
// NVIDIA's documentation of the driver API and uses its names.
#ifndef TA_CUDA_ABI_H
#define TA_CUDA_ABI_H
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUarray_st *CUarray;
typedef struct CUmemPool_st *CUmemoryPool;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef uint64_t CUmemGenericAllocationHandle;

typedef struct {
	unsigned char bytes[64];
} CUipcMemHandle;

typedef struct {
	int type, id;
} CUmemLocation;

// Where and how cuMemCreate allocates.
typedef struct {
	int type, handle_types;
	CUmemLocation location;
	void *win32;
	unsigned char compression, gpu_direct_rdma;
	unsigned short usage;
	unsigned char reserved[4];
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	int flags;
} CUmemAccessDesc;

// Descriptors of arrays.
typedef struct {
	size_t width, height;
	unsigned format, channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
	size_t width, height, depth;
	unsigned format, channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_RUNTIME_INSUFFICIENT_DRIVER = 35, // cudaErrorInsufficientDriver

	CU_STREAM_LEGACY = 1, // these two are a CUstream
	CU_STREAM_PER_THREAD = 2,
	CU_STREAM_NON_BLOCKING = 1,
	CU_STREAM_CAPTURE_STATUS_NONE = 0,
	CU_STREAM_CAPTURE_MODE_RELAXED = 2,
	CU_EVENT_DISABLE_TIMING = 2,
	CU_MEM_ATTACH_GLOBAL = 1,
	CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
	CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
	CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
	CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
	CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
	CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6,
	CU_MEM_LOCATION_TYPE_DEVICE = 1,
	CU_MEM_LOCATION_TYPE_HOST = 2,
	CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
	CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
	CU_DEVICE_CPU = -1,

	CU_POINTER_ATTRIBUTE_CONTEXT = 1,
	CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
	CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
	CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
	CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,

	CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
	CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
	CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
	CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
	CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,

	CUDA_ARRAY3D_LAYERED = 0x01,
	CUDA_ARRAY3D_CUBEMAP = 0x04,
	CUDA_ARRAY3D_SPARSE = 0x40,
	CUDA_ARRAY3D_DEFERRED_MAPPING = 0x80,
};

// The driver's functions that the library itself calls, by the names that libcuda.so.1 exports. A
// driver without one of these is too old.
#define TA_CUDA_NEEDED(F) \
	F(cuCtxGetCurrent, CUcontext *) \
	F(cuCtxGetDevice, CUdevice *) \
	F(cuCtxPushCurrent_v2, CUcontext) \
	F(cuCtxPopCurrent_v2, CUcontext *) \
	F(cuCtxSynchronize, void) \
	F(cuDeviceGet, CUdevice *, int) \
	F(cuDevicePrimaryCtxGetState, CUdevice, unsigned *, int *) \
	F(cuEventCreate, CUevent *, unsigned) \
	F(cuEventQuery, CUevent) \
	F(cuEventRecord, CUevent, CUstream) \
	F(cuMemAdvise, CUdeviceptr, size_t, int, CUdevice) \
	F(cuMemFreeHost, void *) \
	F(cuMemHostAlloc, void **, size_t, unsigned) \
	F(cuMemsetD8Async, CUdeviceptr, unsigned char, size_t, CUstream) \
	F(cuStreamCreate, CUstream *, unsigned) \
	F(cuStreamIsCapturing, CUstream, int *) \
	F(cuStreamQuery, CUstream) \
	F(cuStreamSynchronize, CUstream) \
	F(cuStreamWaitEvent, CUstream, CUevent, unsigned) \
	F(cuThreadExchangeStreamCaptureMode, int *)

// The same, for functions that some drivers do not have.
#define TA_CUDA_NEWER(F) \
	F(cuStreamGetCtx, CUstream, CUcontext *) \
	F(cuCtxRecordEvent, CUcontext, CUevent) \
	F(cuDeviceGetUuid_v2, void *, CUdevice) \
	F(cuDeviceGetAttribute, int *, int, CUdevice) \
	F(cuDeviceGetDefaultMemPool, CUmemoryPool *, CUdevice) \
	F(cuDeviceGetMemPool, CUmemoryPool *, CUdevice) \
	F(cuMemAddressReserve, CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long) \
	F(cuMemAddressFree, CUdeviceptr, size_t) \
	F(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) \
	F(cuMemUnmap, CUdeviceptr, size_t) \
	F(cuMemHostRegister_v2, void *, size_t, unsigned) \
	F(cuMemHostUnregister, void *) \
	F(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, size_t, CUstream) \
	F(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream) \
	F(cuMemSetAccess, CUdeviceptr, size_t, const CUmemAccessDesc *, size_t) \
	F(cuMemAdvise_v2, CUdeviceptr, size_t, int, CUmemLocation) \
	F(cuMemPrefetchAsync, CUdeviceptr, size_t, CUdevice, CUstream) \
	F(cuMemPrefetchAsync_v2, CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream) \
	F(cuMemPrefetchBatchAsync, CUdeviceptr *, size_t *, size_t, CUmemLocation *, size_t *, size_t, \
		unsigned long long, CUstream) \
	F(cuMemDiscardBatchAsync, CUdeviceptr *, size_t *, size_t, unsigned long long, CUstream) \
	F(cuMemDiscardAndPrefetchBatchAsync, CUdeviceptr *, size_t *, size_t, CUmemLocation *, \
		size_t *, size_t, unsigned long long, CUstream) \
	F(cuMemRangeGetAttribute, void *, size_t, int, CUdeviceptr, size_t)

// The functions that the library has a version of. Entry points of the same name with another
// signature (cuMemAlloc without _v2 has 32-bit pointers) are not among them.
#define TA_CUDA_HOOKED(F) \
	F(cuInit, unsigned) \
	F(cuMemAlloc_v2, CUdeviceptr *, size_t) \
	F(cuMemFree_v2, CUdeviceptr) \
	F(cuMemGetInfo_v2, size_t *, size_t *) \
	F(cuDeviceTotalMem_v2, size_t *, CUdevice) \
	F(cuMemGetAddressRange_v2, CUdeviceptr *, size_t *, CUdeviceptr) \
	F(cuPointerGetAttribute, void *, int, CUdeviceptr) \
	F(cuPointerSetAttribute, const void *, int, CUdeviceptr) \
	F(cuPointerGetAttributes, unsigned, int *, void **, CUdeviceptr) \
	F(cuMemAllocPitch_v2, CUdeviceptr *, size_t *, size_t, size_t, unsigned) \
	F(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned) \
	F(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream) \
	F(cuMemAllocAsync_ptsz, CUdeviceptr *, size_t, CUstream) \
	F(cuMemAllocFromPoolAsync, CUdeviceptr *, size_t, CUmemoryPool, CUstream) \
	F(cuMemAllocFromPoolAsync_ptsz, CUdeviceptr *, size_t, CUmemoryPool, CUstream) \
	F(cuMemFreeAsync, CUdeviceptr, CUstream) \
	F(cuMemFreeAsync_ptsz, CUdeviceptr, CUstream) \
	F(cuDeviceSetMemPool, CUdevice, CUmemoryPool) \
	F(cuMemSetMemPool, CUmemLocation *, int, CUmemoryPool) \
	F(cuMemPoolTrimTo, CUmemoryPool, size_t) \
	F(cuMemPoolGetAttribute, CUmemoryPool, int, void *) \
	F(cuMemPoolSetAttribute, CUmemoryPool, int, void *) \
	F(cuMemPoolSetAccess, CUmemoryPool, const CUmemAccessDesc *, size_t) \
	F(cuArrayCreate_v2, CUarray *, const CUDA_ARRAY_DESCRIPTOR *) \
	F(cuArray3DCreate_v2, CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *) \
	F(cuArrayDestroy, CUarray) \
	F(cuMipmappedArrayCreate, CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned) \
	F(cuMipmappedArrayDestroy, CUmipmappedArray) \
	F(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, \
		unsigned long long) \
	F(cuMemRelease, CUmemGenericAllocationHandle) \
	F(cuStreamBeginCapture, CUstream) \
	F(cuStreamBeginCapture_ptsz, CUstream) \
	F(cuStreamBeginCapture_v2, CUstream, int) \
	F(cuStreamBeginCapture_v2_ptsz, CUstream, int) \
	F(cuStreamBeginCaptureToGraph, CUstream, CUgraph, const void *, const void *, size_t, int) \
	F(cuStreamBeginCaptureToGraph_ptsz, CUstream, CUgraph, const void *, const void *, size_t, \
		int) \
	F(cuStreamEndCapture, CUstream, CUgraph *) \
	F(cuStreamEndCapture_ptsz, CUstream, CUgraph *) \
	F(cuStreamDestroy, CUstream) \
	F(cuStreamDestroy_v2, CUstream) \
	F(cuCtxCreate, CUcontext *, unsigned, CUdevice) \
	F(cuCtxCreate_v2, CUcontext *, unsigned, CUdevice) \
	F(cuCtxCreate_v3, CUcontext *, void *, int, unsigned, CUdevice) \
	F(cuCtxCreate_v4, CUcontext *, void *, unsigned, CUdevice) \
	F(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice) \
	F(cuCtxDestroy, CUcontext) \
	F(cuCtxDestroy_v2, CUcontext) \
	F(cuDevicePrimaryCtxRelease, CUdevice) \
	F(cuDevicePrimaryCtxRelease_v2, CUdevice) \
	F(cuDevicePrimaryCtxReset, CUdevice) \
	F(cuDevicePrimaryCtxReset_v2, CUdevice) \
	F(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream) \
	F(cuMemcpyPeerAsync_ptsz, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream) \
	F(cuCtxEnablePeerAccess, CUcontext, unsigned) \
	F(cuIpcGetMemHandle, CUipcMemHandle *, CUdeviceptr) \
	F(cuIpcOpenMemHandle, CUdeviceptr *, CUipcMemHandle, unsigned) \
	F(cuIpcOpenMemHandle_v2, CUdeviceptr *, CUipcMemHandle, unsigned) \
	F(cuIpcCloseMemHandle, CUdeviceptr) \
	F(cuGetProcAddress, const char *, void **, int, uint64_t) \
	F(cuGetProcAddress_v2, const char *, void **, int, uint64_t, int *)

#endif
