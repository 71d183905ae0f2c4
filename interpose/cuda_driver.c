// The real CUDA driver, which the program has loaded. This file loads it only for a program that
// calls the library's functions without it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include "cuda_driver.h"
#include "boot.h"
#include "exports.h"

struct ta_cuda_driver ta_cu;
TLS int ta_cuda_passing, ta_cuda_reached;
TLS CUresult ta_cuda_answer;

enum { UNSEEN, TOO_OLD, USABLE };
static int state;

// Two threads may do this at the same time, because they store the same values.
static int resolve(void *lib)
{
	int lacks = 0;
#define FIND(name, ...) ta_cu.name = (CUresult(*)(__VA_ARGS__))ta_dlsym(lib, #name);
#define NEED(name, ...) lacks |= ta_cu.name == NULL;
	TA_CUDA_NEEDED(FIND)
	TA_CUDA_NEEDED(NEED)
	TA_CUDA_NEWER(FIND)
	TA_CUDA_HOOKED(FIND)
	NEED(cuMemAlloc_v2)
	NEED(cuMemFree_v2)
	NEED(cuMemGetInfo_v2)
	NEED(cuMemGetAddressRange_v2)
	NEED(cuMemAllocManaged)
	NEED(cuDevicePrimaryCtxRetain)
	NEED(cuStreamDestroy_v2)
	NEED(cuDeviceTotalMem_v2)
#undef FIND
#undef NEED
	return lacks ? TOO_OLD : USABLE;
}

// The handle is kept, so that the driver stays loaded: functions of this library, whose addresses
// the program has, call it. NVIDIA's own library never unloads either.
//
// Nsight Compute preloads a library that stands for the driver. Its dlopen opens the first library
// that has a function dlopen in the driver's place, which is this one if it is preloaded before.
static NOINLINE int look(void)
{
	int saved = errno;
	void *lib = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
	int found = lib == NULL ? UNSEEN : resolve(ta_symbols_ours(lib) ? RTLD_NEXT : lib);
	if (found != UNSEEN)
		ta_fork_mark();
	__atomic_store_n(&state, found, __ATOMIC_RELEASE);
	errno = saved;
	return found;
}

int ta_cuda_find(void)
{
	int s = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	return (LIKELY(s != UNSEEN) ? s : look()) != UNSEEN;
}

// Logs, once, why the library serves nothing.
static NOINLINE int refuses(void)
{
	static int told;
	int s = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	if (!ta_flags.CudaOff && !ta_flags.Disabled && s != USABLE &&
		!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		ta_go_cuda_log(s == TOO_OLD ? TA_EVENT_DRIVER_OLD : TA_EVENT_DRIVER_MISSING, 0, 0);
	return 0;
}

int ta_cuda_serves(CUcontext *current)
{
	if (current != NULL)
		*current = NULL;
	if (UNLIKELY(ta_mode == TA_UNBOOTED))
		ta_boot();
	if (UNLIKELY(ta_flags.CudaOff || ta_flags.Disabled || ta_cuda_passing || !ta_cuda_find() ||
			state != USABLE))
		return refuses();
	return current == NULL || LIKELY(ta_cu.cuCtxGetCurrent(current) == CUDA_SUCCESS);
}

// If a program is linked with this library before the driver, and this library has all driver
// functions that it names, the linker drops the driver (--as-needed). No search returns this
// library's functions without a driver.
void ta_cuda_load(void)
{
	int saved = errno;
	if (!ta_cuda_find() && dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL) != NULL)
		look();
	errno = saved;
}

// A failure, as of a driver that finds no device, is logged.
EXPORT CUresult cuInit(unsigned flags)
{
	ta_cuda_load();
	CUresult e = TA_CUDA_PASS(cuInit, flags);
	if (e != CUDA_SUCCESS && ta_cuda_serves(NULL))
		ta_go_cuda_log(TA_EVENT_DRIVER_FAILS, (uintptr_t)e, 0);
	return e;
}
