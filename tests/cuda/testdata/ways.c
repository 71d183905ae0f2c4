// Each way in which a program gets at the driver's functions: prints in which file what
// it got is, then what allocating by it does. Built with -DLINKED against the driver and the
// runtime, with -DSTATIC with the runtime inside, and with neither.
#include "common.h"

CUresult cudaMalloc(void **, size_t), cudaFree(void *), cudaGetLastError(void),
	cudaMemGetInfo(size_t *, size_t *),
	cudaGetDriverEntryPoint(const char *, void **, uint64_t, int *), cudaSetDevice(int),
	cudaGetDriverEntryPoint_ptsz(const char *, void **, uint64_t, int *),
	cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, uint64_t, int *),
	cudaGetDriverEntryPointByVersion_ptsz(const char *, void **, unsigned, uint64_t, int *);

static void try(CUresult (*alloc)(CUdeviceptr *, size_t), CUresult (*release)(CUdeviceptr))
{
	CUdeviceptr p = 0, q = 0;
	printf("in %s %s\n", where((void *)alloc), where((void *)release));
	SHOW(alloc(&p, 1000));
	SHOW(alloc(&q, 3 * MIB));
	CHECK(p % 512 == 0 && q % 512 == 0 && p != q, "%jx %jx", (uintmax_t)p, (uintmax_t)q);
	memset((void *)p, 1, 1000);
	memset((void *)q, 1, 3 * MIB);
	SHOW(release(p));
	SHOW(release(q));
	SHOW(release(q));
	SHOW(alloc(&p, 0));
	SHOW(alloc(&p, 1ul << 50));
}

static void handle(void)
{
	load();
	try(cu.cuMemAlloc_v2, cu.cuMemFree_v2);
}

static CUresult (*resolver(const char *name))(const char *, void **, int, uint64_t, int *)
{
	load();
	return (CUresult(*)(const char *, void **, int, uint64_t, int *))dlsym(
		dlopen("libcuda.so.1", RTLD_LAZY), name);
}

static void proc(void)
{
	CUresult (*alloc)(CUdeviceptr *, size_t), (*release)(CUdeviceptr);
	CUresult (*get)(const char *, void **, int,
		uint64_t) = (CUresult(*)(const char *, void **, int, uint64_t))resolver("cuGetProcAddress");
	SHOW(get("cuMemAlloc", (void **)&alloc, 11030, 0));
	SHOW(get("cuMemFree", (void **)&release, 11030, 0));
	try(alloc, release);
	SHOW(get("cuNope", (void **)&alloc, 11030, 0));
}

static void proc_v2(void)
{
	int status = -1;
	CUresult (*alloc)(CUdeviceptr *, size_t), (*release)(CUdeviceptr);
	CUresult (*get)(const char *, void **, int, uint64_t, int *) = resolver("cuGetProcAddress_v2");
	SHOW(get("cuGetProcAddress", (void **)&get, 12000, 0, &status));
	SHOW(get("cuMemAlloc", (void **)&alloc, 3020, 0, &status));
	SHOW(get("cuMemFree", (void **)&release, 13000, 0, NULL));
	printf("status %d\n", status);
	try(alloc, release);
}

// Forms of a name by version and flags: those whose signature is not ours pass.
static void versions(void)
{
	static const struct {
		const char *name;
		int version;
		uint64_t flags;
	} asked[] = {
		{"cuMemAlloc", 2000, 0},
		{"cuMemAlloc", 3020, 0},
		{"cuMemAlloc", 13000, 1},
		{"cuMemAlloc", 13000, 2},
		{"cuMemAlloc", 1000, 0},
		{"cuMemAllocAsync", 11010, 0},
		{"cuMemAllocAsync", 11020, 0},
		{"cuMemAllocAsync", 11020, 2},
		{"cuStreamBeginCapture", 10000, 0},
		{"cuStreamBeginCapture", 10010, 0},
		{"cuStreamBeginCapture", 10010, 2},
		{"cuGetProcAddress", 11030, 0},
		{"cuGetProcAddress", 12000, 0},
		{"cuInit", 13000, 0},
		{"cuDriverGetVersion", 13000, 0},
		{"cuNope", 13000, 0},
		{"cuMemAlloc_v2", 13000, 0},
		{"cudaMalloc", 13000, 0},
		{"cuDevicePrimaryCtxRelease", 7000, 0},
	};
	CUresult (*get)(const char *, void **, int, uint64_t, int *) = resolver("cuGetProcAddress_v2");
	for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
		void *f = (void *)1;
		int status = -1;
		CUresult e = get(asked[i].name, &f, asked[i].version, asked[i].flags, &status);
		Dl_info d = {0};
		if (f != NULL)
			dladdr(f, &d);
		printf("%s %d/%d: %d status %d ", asked[i].name, asked[i].version, (int)asked[i].flags, e,
			status);
		printf("in %s ", where(f));
		printf("%s\n", d.dli_sname != NULL ? d.dli_sname : "-");
	}
	SHOW(get("cuNope", (void **)&get, 13000, 0, NULL));
}

// A search of everything that is loaded: first with the driver out of its sight.
static void everywhere(void)
{
	load();
	void *f = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL) != NULL, "%s", dlerror());
	f = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	void *g = dlsym(dlopen(NULL, RTLD_LAZY), "cuMemFree_v2");
	try((CUresult(*)(CUdeviceptr *, size_t))f, (CUresult(*)(CUdeviceptr))g);
	printf("in %s\n", where(dlsym(RTLD_DEFAULT, "cuInit")));
	printf("cudaMalloc in %s\n", where(dlsym(RTLD_DEFAULT, "cudaMalloc")));
}

#if defined LINKED || defined STATIC
static void runtime(void)
{
	void *p = NULL, *q = NULL;
	size_t free, total;
	printf("cudaMalloc in %s\n", where((void *)cudaMalloc));
	SHOW(cudaFree(NULL));
	SHOW(cudaMalloc(&p, 1000));
	SHOW(cudaMalloc(&q, 3 * MIB));
	memset(p, 1, 1000);
	memset(q, 1, 3 * MIB);
	SHOW(cudaFree(p));
	SHOW(cudaFree(q));
	SHOW(cudaGetLastError());
	SHOW(cudaFree(q));
	SHOW(cudaGetLastError());
	SHOW(cudaFree((char *)&total));
	SHOW(cudaGetLastError());
	SHOW(cudaMalloc(&p, 0));
	printf("nothing is %s\n", p == NULL ? "NULL" : "something");
	SHOW(cudaMalloc(&p, 1ul << 50));
	SHOW(cudaGetLastError());
	SHOW(cudaMemGetInfo(&free, &total));
}

static void entry(void)
{
	CUresult (*alloc)(CUdeviceptr *, size_t), (*release)(CUdeviceptr),
		(*async)(CUdeviceptr *, size_t, CUstream);
	int status = -1;
	SHOW(cudaFree(NULL));
	SHOW(cudaGetDriverEntryPoint("cuMemAlloc", (void **)&alloc, 0, &status));
	SHOW(cudaGetDriverEntryPointByVersion("cuMemFree", (void **)&release, 12000, 0, &status));
	try(alloc, release);
	SHOW(cudaGetDriverEntryPoint_ptsz("cuMemAllocAsync", (void **)&async, 0, &status));
	printf("in %s\n", where((void *)async));
	SHOW(cudaGetDriverEntryPointByVersion_ptsz(
		"cuMemAllocAsync", (void **)&async, 11010, 0, &status));
	printf("status %d\n", status);
}

// Contexts of two devices; the driver says on which one a block lies.
static void devices(void)
{
	void *p, *q;
	int a = -1, b = -1;
	CUresult (*attribute)(void *, int, CUdeviceptr);
	int status;
	SHOW(cudaSetDevice(0));
	SHOW(cudaMalloc(&p, 1000));
	SHOW(cudaSetDevice(1));
	SHOW(cudaMalloc(&q, 1000));
	SHOW(cudaGetDriverEntryPoint("cuPointerGetAttribute", (void **)&attribute, 0, &status));
	attribute(&a, 9, (CUdeviceptr)p);
	attribute(&b, 9, (CUdeviceptr)q);
	printf("devices %d %d\n", a, b);
}
#endif

#ifdef LINKED
CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice),
	cuCtxSetCurrent(CUcontext), cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr);

static void linked(void)
{
	CUcontext c;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&c, 0));
	OK(cuCtxSetCurrent(c));
	try(cuMemAlloc_v2, cuMemFree_v2);
}
#endif

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"handle", handle},
		{"proc", proc},
		{"proc_v2", proc_v2},
		{"versions", versions},
		{"everywhere", everywhere},
#if defined LINKED || defined STATIC
		{"runtime", runtime},
		{"entry", entry},
		{"devices", devices},
#endif
#ifdef LINKED
		{"linked", linked},
#endif
	};
	RUN(tests);
}
