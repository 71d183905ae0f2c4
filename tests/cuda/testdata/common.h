// What the test programs share. They print what a program can see, which must be the
// same with the library as without it; addresses are not printed.
#ifndef COMMON_H
#define COMMON_H
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fake.h"

// The driver's functions that the programs call, by the names of libcuda.so.1.
#define PROGRAM(F) \
	F(cuInit, unsigned) \
	F(cuDeviceGet, CUdevice *, int) \
	F(cuCtxCreate_v2, CUcontext *, unsigned, CUdevice) \
	F(cuCtxDestroy_v2, CUcontext) \
	F(cuCtxSetCurrent, CUcontext) \
	F(cuCtxGetCurrent, CUcontext *) \
	F(cuCtxPushCurrent_v2, CUcontext) \
	F(cuCtxPopCurrent_v2, CUcontext *) \
	F(cuCtxSynchronize, void) \
	F(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream) \
	F(cuCtxEnablePeerAccess, CUcontext, unsigned) \
	F(cuCtxDisablePeerAccess, CUcontext) \
	F(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice) \
	F(cuDevicePrimaryCtxRelease_v2, CUdevice) \
	F(cuDevicePrimaryCtxReset_v2, CUdevice) \
	F(cuDeviceTotalMem_v2, size_t *, CUdevice) \
	F(cuMemAlloc_v2, CUdeviceptr *, size_t) \
	F(cuMemFree_v2, CUdeviceptr) \
	F(cuMemGetInfo_v2, size_t *, size_t *) \
	F(cuMemGetAddressRange_v2, CUdeviceptr *, size_t *, CUdeviceptr) \
	F(cuPointerGetAttribute, void *, int, CUdeviceptr) \
	F(cuPointerSetAttribute, const void *, int, CUdeviceptr) \
	F(cuPointerGetAttributes, unsigned, int *, void **, CUdeviceptr) \
	F(cuMemAllocPitch_v2, CUdeviceptr *, size_t *, size_t, size_t, unsigned) \
	F(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned) \
	F(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream) \
	F(cuMemAllocAsync_ptsz, CUdeviceptr *, size_t, CUstream) \
	F(cuMemAllocFromPoolAsync, CUdeviceptr *, size_t, CUmemoryPool, CUstream) \
	F(cuMemFreeAsync, CUdeviceptr, CUstream) \
	F(cuMemFreeAsync_ptsz, CUdeviceptr, CUstream) \
	F(cuArrayCreate_v2, CUarray *, const CUDA_ARRAY_DESCRIPTOR *) \
	F(cuArray3DCreate_v2, CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *) \
	F(cuArrayDestroy, CUarray) \
	F(cuMipmappedArrayCreate, CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned) \
	F(cuMipmappedArrayDestroy, CUmipmappedArray) \
	F(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, \
		unsigned long long) \
	F(cuMemRelease, CUmemGenericAllocationHandle) \
	F(cuDeviceGetDefaultMemPool, CUmemoryPool *, CUdevice) \
	F(cuDeviceSetMemPool, CUdevice, CUmemoryPool) \
	F(cuMemSetMemPool, CUmemLocation *, int, CUmemoryPool) \
	F(cuMemPoolTrimTo, CUmemoryPool, size_t) \
	F(cuMemPoolGetAttribute, CUmemoryPool, int, void *) \
	F(cuMemPoolSetAttribute, CUmemoryPool, int, void *) \
	F(cuMemPoolSetAccess, CUmemoryPool, const CUmemAccessDesc *, size_t) \
	F(cuEventCreate, CUevent *, unsigned) \
	F(cuEventRecord, CUevent, CUstream) \
	F(cuStreamWaitEvent, CUstream, CUevent, unsigned) \
	F(cuStreamCreate, CUstream *, unsigned) \
	F(cuStreamDestroy_v2, CUstream) \
	F(cuStreamBeginCapture_v2, CUstream, int) \
	F(cuStreamBeginCapture_v2_ptsz, CUstream, int) \
	F(cuStreamEndCapture, CUstream, CUgraph *) \
	F(cuStreamEndCapture_ptsz, CUstream, CUgraph *) \
	F(cuStreamIsCapturing, CUstream, int *) \
	F(cuThreadExchangeStreamCaptureMode, int *) \
	F(cuIpcGetMemHandle, CUipcMemHandle *, CUdeviceptr) \
	F(cuIpcOpenMemHandle_v2, CUdeviceptr *, CUipcMemHandle, unsigned) \
	F(cuIpcCloseMemHandle, CUdeviceptr) \
	F(cuGetProcAddress_v2, const char *, void **, int, uint64_t, int *)

// The fake's own, for what the test says and asks.
#define CONTROL(F) \
	F(void, fake_fail, const char *, int, CUresult) \
	F(void, fake_complete, CUstream) \
	F(void, fake_complete_all, void) \
	F(CUresult, fake_launch, CUdeviceptr, size_t, int, CUstream) \
	F(CUresult, fake_touch, CUdeviceptr, size_t, int, CUstream) \
	F(int, fake_busy, CUdeviceptr, size_t, CUstream, int) \
	F(unsigned long, fake_calls, const char *) \
	F(unsigned long, fake_illegals, void) \
	F(size_t, fake_used, CUdevice) \
	F(CUmemoryPool, fake_pool, CUdevice)

#define FIELD(name, ...) CUresult (*name)(__VA_ARGS__);
static __attribute__((unused)) struct {
	PROGRAM(FIELD)
} cu;
#define CONTROL_FIELD(type, name, ...) type (*name)(__VA_ARGS__);
static __attribute__((unused)) struct {
	CONTROL(CONTROL_FIELD)
} fake;

#define CHECK(ok, ...) \
	do { \
		if (!(ok)) { \
			fflush(stdout); \
			dprintf(1, "%s:%d: not so: %s:", __FILE__, __LINE__, #ok); \
			dprintf(1, " " __VA_ARGS__); \
			dprintf(1, "\n"); \
			_exit(1); \
		} \
	} while (0)

// Prints the call and its result, 0 for success.
#define SHOW(call) printf("%s = %d\n", #call, (int)(call))
#define OK(call)   CHECK((call) == 0, "%s", #call)

#define MIB (1024 * 1024ul)

// Loads the driver as most programs do and makes the first device's context current.
static __attribute__((unused)) CUcontext load(void)
{
	CUcontext c;
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
	CHECK(lib != NULL, "%s", dlerror());
#define FETCH(name, ...) \
	CHECK((cu.name = (CUresult(*)(__VA_ARGS__))dlsym(lib, #name)) != NULL, #name);
	PROGRAM(FETCH)
#define CONTROL_FETCH(type, name, ...) \
	if ((fake.name = (type(*)(__VA_ARGS__))dlsym(lib, #name)) == NULL) \
		fake.name = (type(*)(__VA_ARGS__))dlsym(RTLD_DEFAULT, #name); \
	CHECK(fake.name != NULL, #name);
	CONTROL(CONTROL_FETCH)
	OK(cu.cuInit(0));
	OK(cu.cuDevicePrimaryCtxRetain(&c, 0));
	OK(cu.cuCtxSetCurrent(c));
	return c;
}

// Free bytes of the device, as the program sees them.
static __attribute__((unused)) size_t free_now(void)
{
	size_t free, total;
	OK(cu.cuMemGetInfo_v2(&free, &total));
	return free;
}

// The file that a function is in, without its folder.
static __attribute__((unused)) const char *where(void *f)
{
	Dl_info i;
	if (f == NULL)
		return "nowhere";
	if (dladdr(f, &i) == 0)
		return "unknown";
	const char *slash = strrchr(i.dli_fname, '/');
	return slash != NULL ? slash + 1 : i.dli_fname;
}

// Where our own library is loaded, by a function that only it has.
static __attribute__((unused)) void *ours(const char *name) { return dlsym(RTLD_DEFAULT, name); }

struct test {
	const char *name;
	void (*run)(void);
};

// Runs the case that the first argument names. Calls that no correct program makes end it badly.
#define RUN(tests) \
	do { \
		setvbuf(stdout, NULL, _IOLBF, 0); \
		for (unsigned i_ = 0; argc > 1 && i_ < sizeof tests / sizeof *tests; i_++) \
			if (strcmp(argv[1], tests[i_].name) == 0) { \
				tests[i_].run(); \
				CHECK(fake.fake_illegals == NULL || fake.fake_illegals() == 0, "see above"); \
				return 0; \
			} \
		printf("no such case\n"); \
		return 2; \
	} while (0)

#endif
