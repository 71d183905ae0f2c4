// A CUDA runtime that reaches the driver as NVIDIA's does: by dlopen, dlsym of
// cuGetProcAddress_v2, and that for all the rest. Built as libcudart.so.13 and, into a
// program, as the static one. CUDART says which version it is.
#include <dlfcn.h>
#include "../fake.h"

#ifndef CUDART
#	define CUDART 13000
#endif

static CUresult (*resolve)(const char *, void **, int, uint64_t, int *);
static CUresult (*init)(unsigned), (*set_current)(CUcontext), (*get_current)(CUcontext *);
static CUresult (*retain)(CUcontext *, CUdevice), (*alloc)(CUdeviceptr *, size_t),
	(*release)(CUdeviceptr);
static CUresult (*info)(size_t *, size_t *), (*reset)(CUdevice);
static __thread CUresult last;
static __thread int device, made = -1; // the device asked for, and whose context was made current

static int find(void **out, const char *name)
{
	int status;
	return resolve(name, out, CUDART, 0, &status) == 0 && status == 0;
}

static CUresult start(void)
{
	if (resolve == NULL) {
		void *lib = dlopen("libcuda.so.1", RTLD_LAZY), *f = NULL;
		int status;
		*(void **)&resolve = lib != NULL ? dlsym(lib, "cuGetProcAddress_v2") : NULL;
		if (resolve == NULL)
			return 35;
		// As the runtime does, go on with the one for the version.
		if (resolve("cuGetProcAddress", &f, 12000, 0, &status) == 0 && status == 0)
			*(void **)&resolve = f;
	}
	if (!find((void **)&init, "cuInit") || !find((void **)&set_current, "cuCtxSetCurrent") ||
		!find((void **)&get_current, "cuCtxGetCurrent") ||
		!find((void **)&retain, "cuDevicePrimaryCtxRetain") ||
		!find((void **)&alloc, "cuMemAlloc") || !find((void **)&release, "cuMemFree") ||
		!find((void **)&info, "cuMemGetInfo") || !find((void **)&reset, "cuDevicePrimaryCtxReset"))
		return 35;
	CUcontext c;
	CUresult e = init(0);
	if (e == 0 && (get_current(&c) != 0 || c == NULL || (made >= 0 && made != device))) {
		e = retain(&c, device);
		if (e == 0)
			e = set_current(c);
	}
	made = device;
	return e;
}

static CUresult keep(CUresult e)
{
	if (e != 0)
		last = e;
	return e;
}

API CUresult cudaRuntimeGetVersion(int *v)
{
	*v = CUDART;
	return 0;
}

API CUresult cudaGetLastError(void)
{
	CUresult e = last;
	last = 0;
	return e;
}

// From 12.0 on the device's context is current at once; before, at the next call that
// needs one.
API CUresult cudaSetDevice(int d)
{
	device = d;
	return CUDART >= 12000 ? keep(start()) : 0;
}

API CUresult cudaMalloc(void **out, size_t n)
{
	CUdeviceptr p = 0;
	CUresult e = start();
	if (e == 0 && n != 0)
		e = alloc(&p, n);
	if (e == 0)
		*out = (void *)p;
	return keep(e);
}

API CUresult cudaFree(void *p)
{
	CUresult e = start();
	if (e == 0 && p != NULL)
		e = release((CUdeviceptr)p);
	return keep(e);
}

API CUresult cudaMemGetInfo(size_t *free, size_t *total)
{
	CUresult e = start();
	return keep(e != 0 ? e : info(free, total));
}

API CUresult cudaDeviceReset(void)
{
	CUresult e = start();
	return keep(e != 0 ? e : reset(device));
}

static CUresult entry(const char *name, void **out, int version, uint64_t flags, int *status)
{
	CUresult e = start();
	return keep(e != 0 ? e : resolve(name, out, version, flags, status));
}

API CUresult cudaGetDriverEntryPoint(const char *name, void **out, uint64_t flags, int *status)
{
	return entry(name, out, CUDART, flags, status);
}

API CUresult cudaGetDriverEntryPoint_ptsz(const char *name, void **out, uint64_t flags, int *status)
{
	return entry(name, out, CUDART, flags == 0 ? 2 : flags, status);
}

API CUresult cudaGetDriverEntryPointByVersion(
	const char *name, void **out, unsigned version, uint64_t flags, int *status)
{
	return entry(name, out, (int)version, flags, status);
}

API CUresult cudaGetDriverEntryPointByVersion_ptsz(
	const char *name, void **out, unsigned version, uint64_t flags, int *status)
{
	return entry(name, out, (int)version, flags == 0 ? 2 : flags, status);
}
