// Each function of the driver that has a version of ours: the same results as without.
#include "common.h"

static void pointers(void)
{
	CUdeviceptr p, q;
	char local;
	load();
	OK(cu.cuMemAlloc_v2(&p, 1000));
	OK(cu.cuMemAlloc_v2(&q, 5 * MIB));
	SHOW(cu.cuMemFree_v2(0));
	SHOW(cu.cuMemFree_v2(p + 16));
	SHOW(cu.cuMemFree_v2(q + MIB));
	SHOW(cu.cuMemFree_v2(0x1000));
	SHOW(cu.cuMemFree_v2((CUdeviceptr)&local));
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemFree_v2(q));
	SHOW(cu.cuMemFree_v2(q));
	SHOW(cu.cuMemFreeAsync(q, NULL));
	SHOW(cu.cuMemAlloc_v2(NULL, 1000));
	SHOW(cu.cuMemAlloc_v2(&p, 0));
	SHOW(cu.cuMemAlloc_v2(&p, ~0ul));
	SHOW(cu.cuCtxSetCurrent(NULL));
	SHOW(cu.cuMemAlloc_v2(&p, 1000));
	SHOW(cu.cuMemGetInfo_v2(NULL, NULL));
}

// A block freed by a thread that has no context.
static void contextless(void)
{
	CUdeviceptr p, q;
	load();
	OK(cu.cuMemAlloc_v2(&p, 1000));
	OK(cu.cuMemAlloc_v2(&q, 5 * MIB));
	OK(cu.cuCtxSetCurrent(NULL));
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemFree_v2(q));
	SHOW(cu.cuMemFree_v2(q));
}

static void uninitialised(void)
{
	CUdeviceptr p;
	size_t n;
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
#define TAKE(name) __typeof__(cu.name) name = (__typeof__(cu.name))dlsym(lib, #name)
	TAKE(cuMemAlloc_v2);
	TAKE(cuMemFree_v2);
	TAKE(cuMemGetInfo_v2);
	TAKE(cuCtxDestroy_v2);
	TAKE(cuStreamDestroy_v2);
	TAKE(cuDevicePrimaryCtxReset_v2);
	TAKE(cuPointerGetAttribute);
	SHOW(cuMemAlloc_v2(&p, 1000));
	SHOW(cuMemFree_v2(0x1000));
	SHOW(cuMemGetInfo_v2(&n, &n));
	SHOW(cuCtxDestroy_v2(NULL));
	SHOW(cuStreamDestroy_v2((CUstream)0x10));
	SHOW(cuDevicePrimaryCtxReset_v2(0));
	SHOW(cuPointerGetAttribute(&p, 7, 0x1000));
}

static void describe(CUdeviceptr p, CUdeviceptr in)
{
	CUdeviceptr base = 0, start = 0;
	size_t size = 0, length = 0;
	unsigned ordinal = 77, type = 77;
	uint64_t id = 0, id2 = 0;
	SHOW(cu.cuMemGetAddressRange_v2(&base, &size, in));
	printf("from %jd, %zu bytes\n", (intmax_t)(base - p), size);
	SHOW(cu.cuMemGetAddressRange_v2(NULL, &size, in));
	SHOW(cu.cuMemGetAddressRange_v2(&base, NULL, in));
	SHOW(cu.cuPointerGetAttribute(&start, 11, in));
	SHOW(cu.cuPointerGetAttribute(&length, 12, in));
	SHOW(cu.cuPointerGetAttribute(&ordinal, 9, in));
	SHOW(cu.cuPointerGetAttribute(&id, 7, in));
	SHOW(cu.cuPointerGetAttribute(&type, 2, in));
	printf(
		"from %jd, %zu bytes, device %u, type %u\n", (intmax_t)(start - p), length, ordinal, type);
	start = length = 0;
	int asked[] = {12, 2, 7, 11};
	void *data[] = {&length, &type, &id2, &start};
	SHOW(cu.cuPointerGetAttributes(4, asked, data, in));
	printf("from %jd, %zu bytes, same number %d\n", (intmax_t)(start - p), length, id == id2);
}

static void ranges(void)
{
	static const size_t sizes[] = {1, 512, 1000, 4096, 100000, MIB - 1, MIB, 3 * MIB, 20 * MIB + 5};
	CUdeviceptr p[sizeof sizes / sizeof *sizes], base;
	uint64_t before, after;
	load();
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		OK(cu.cuMemAlloc_v2(&p[i], sizes[i]));
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		describe(p[i], p[i]);
		describe(p[i], p[i] + sizes[i] - 1);
	}
	SHOW(cu.cuMemGetAddressRange_v2(&base, NULL, 0x1000));
	SHOW(cu.cuPointerGetAttribute(&base, 11, 0x1000));
	SHOW(cu.cuPointerGetAttribute(NULL, 11, p[0]));
	SHOW(cu.cuPointerGetAttribute(&base, 4711, p[0]));
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i += 2) { // freed, and cached perhaps
		unsigned ordinal = 77;
		int asked[] = {11, 9};
		void *data[] = {&base, &ordinal};
		CUipcMemHandle h;
		OK(cu.cuMemFree_v2(p[i]));
		SHOW(cu.cuMemGetAddressRange_v2(&base, NULL, p[i]));
		SHOW(cu.cuPointerGetAttribute(&base, 11, p[i]));
		SHOW(cu.cuPointerGetAttribute(&ordinal, 9, p[i]));
		SHOW(cu.cuPointerGetAttributes(2, asked, data, p[i]));
		SHOW(cu.cuIpcGetMemHandle(&h, p[i]));
		printf("%jd %u\n", (intmax_t)base, ordinal);
	}
	SHOW(cu.cuMemGetAddressRange_v2(&base, NULL, p[1] + sizes[1]));
	SHOW(cu.cuMemGetAddressRange_v2(&base, NULL, p[3] + sizes[3]));
	SHOW(cu.cuMemGetAddressRange_v2(&base, NULL, p[5] + sizes[5]));
	OK(cu.cuPointerGetAttribute(&before, 7, p[3]));
	OK(cu.cuMemFree_v2(p[3]));
	OK(cu.cuMemAlloc_v2(&p[3], sizes[3]));
	OK(cu.cuPointerGetAttribute(&after, 7, p[3]));
	printf("another number after reuse: %d\n", before != after);
}

static void info(void)
{
	size_t total, all, before;
	CUdeviceptr p;
	load();
	before = free_now();
	OK(cu.cuMemGetInfo_v2(NULL, &all));
	OK(cu.cuDeviceTotalMem_v2(&total, 0));
	printf("total %zu MiB, the same %d\n", total / MIB, total == all);
	SHOW(cu.cuMemGetInfo_v2(&before, NULL));
	SHOW(cu.cuMemGetInfo_v2(NULL, NULL));
	SHOW(cu.cuDeviceTotalMem_v2(NULL, 0));
	SHOW(cu.cuDeviceTotalMem_v2(&total, 7));
	OK(cu.cuMemAlloc_v2(&p, 40 * MIB));
	printf("%zu MiB taken\n", (before - free_now()) / MIB);
	OK(cu.cuMemFree_v2(p));
	printf("%zu MiB taken after free\n", (before - free_now()) / MIB);
}

// What the driver serves itself: written to, found by its address, freed.
static void foreign(void)
{
	CUdeviceptr p;
	size_t pitch;
	CUarray a;
	CUmipmappedArray m;
	CUmemGenericAllocationHandle h;
	CUstream s;
	load();
	OK(cu.cuStreamCreate(&s, 1));
	size_t before = free_now();
	SHOW(cu.cuMemAllocPitch_v2(&p, &pitch, 1000, 5000, 4));
	printf("pitch %zu\n", pitch);
	describe(p, p + 4096);
	memset((void *)p, 1, pitch * 5000);
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemAllocPitch_v2(&p, &pitch, 1000, 10, 3));
	SHOW(cu.cuMemAllocPitch_v2(&p, &pitch, ~0ul, ~0ul, 4));
	SHOW(cu.cuMemAllocManaged(&p, 3 * MIB, 1));
	describe(p, p);
	memset((void *)p, 1, 3 * MIB);
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemAllocManaged(&p, 3 * MIB, 9));
	SHOW(cu.cuMemAllocAsync(&p, 3 * MIB, s));
	SHOW(cu.cuMemFreeAsync(p, s));
	SHOW(cu.cuMemAllocAsync_ptsz(&p, 1000, NULL));
	SHOW(cu.cuMemFreeAsync_ptsz(p, NULL));
	SHOW(cu.cuMemAllocFromPoolAsync(&p, 3 * MIB, fake.fake_pool(0), s));
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemAllocFromPoolAsync(&p, 3 * MIB, NULL, s));
	SHOW(cu.cuArrayCreate_v2(&a, &(CUDA_ARRAY_DESCRIPTOR){1000, 1000, 0x20, 1}));
	SHOW(cu.cuArrayDestroy(a));
	SHOW(cu.cuArray3DCreate_v2(&a, &(CUDA_ARRAY3D_DESCRIPTOR){100, 100, 100, 0x20, 1, 0}));
	SHOW(cu.cuArrayDestroy(a));
	SHOW(cu.cuMipmappedArrayCreate(&m, &(CUDA_ARRAY3D_DESCRIPTOR){1000, 1000, 0, 0x20, 1, 0}, 5));
	SHOW(cu.cuMipmappedArrayDestroy(m));
	SHOW(cu.cuMemCreate(
		&h, 4 * MIB, &(CUmemAllocationProp){1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}}, 0));
	SHOW(cu.cuMemRelease(h));
	SHOW(cu.cuMemCreate(
		&h, 4 * MIB + 1, &(CUmemAllocationProp){1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}}, 0));
	SHOW(cu.cuMemAlloc_v2(&p, 1000));
	SHOW(cu.cuMemFreeAsync(p, s));
	fake.fake_complete_all();
	printf("%zu MiB taken\n", (before - free_now()) / MIB);
}

static void *other_thread(void *stream)
{
	CUgraph g;
	CUcontext c;
	OK(cu.cuDevicePrimaryCtxRetain(&c, 0));
	OK(cu.cuCtxSetCurrent(c));
	SHOW(cu.cuStreamEndCapture(stream, &g));
	return NULL;
}

static void capture(void)
{
	CUdeviceptr p, q;
	CUstream s, other;
	CUgraph g;
	int mode = 2, state;
	pthread_t t;
	load();
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuStreamCreate(&other, 1));
	OK(cu.cuMemAlloc_v2(&q, 5 * MIB));
	SHOW(cu.cuStreamEndCapture(s, &g));
	SHOW(cu.cuStreamBeginCapture_v2(NULL, 0));
	SHOW(cu.cuStreamBeginCapture_v2(s, 0));
	SHOW(cu.cuStreamBeginCapture_v2(s, 0));
	SHOW(cu.cuMemAlloc_v2(&p, 1000)); // forbidden, and the capture is lost
	SHOW(cu.cuStreamEndCapture(s, &g));
	SHOW(cu.cuStreamEndCapture(s, &g));
	SHOW(cu.cuStreamBeginCapture_v2(s, 0));
	pthread_create(&t, NULL, other_thread, s);
	pthread_join(t, NULL);
	cu.cuThreadExchangeStreamCaptureMode(&mode);
	SHOW(cu.cuMemAlloc_v2(&p, 1000));
	OK(fake.fake_launch(p, 1000, 1, other));
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemAlloc_v2(&p, 30 * MIB));
	cu.cuThreadExchangeStreamCaptureMode(&mode);
	OK(cu.cuStreamIsCapturing(s, &state));
	printf("state %d\n", state);
	SHOW(cu.cuStreamEndCapture(s, &g));
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemFree_v2(q));
	SHOW(cu.cuStreamBeginCapture_v2_ptsz(NULL, 1));
	SHOW(cu.cuStreamEndCapture_ptsz(NULL, &g));
	SHOW(cu.cuStreamBeginCapture_v2(s, 2));
	SHOW(cu.cuStreamDestroy_v2(s)); // ends its capture
	SHOW(cu.cuMemAlloc_v2(&p, 1000));
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuStreamDestroy_v2(other));
}

static void ipc(void)
{
	static const size_t sizes[] = {1000, 1000, 100000, 3 * MIB, 20 * MIB};
	load();
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		CUdeviceptr p, q = 0;
		CUipcMemHandle h;
		OK(cu.cuMemAlloc_v2(&p, sizes[i]));
		SHOW(cu.cuIpcGetMemHandle(&h, p));
		SHOW(cu.cuIpcOpenMemHandle_v2(&q, h, 1));
		printf("off by %jd\n", (intmax_t)(q - p));
		SHOW(cu.cuIpcCloseMemHandle(q));
		SHOW(cu.cuIpcGetMemHandle(&h, p + sizes[i] / 2));
		SHOW(cu.cuIpcOpenMemHandle_v2(&q, h, 1));
		printf("off by %jd\n", (intmax_t)(q - p));
		memset(&h, 0x33, sizeof h);
		SHOW(cu.cuIpcOpenMemHandle_v2(&q, h, 1));
	}
	CUipcMemHandle h;
	SHOW(cu.cuIpcGetMemHandle(&h, 0x1000));
}

static void forked(void)
{
	CUdeviceptr p, q;
	size_t n;
	int status;
	load();
	OK(cu.cuMemAlloc_v2(&p, 1000));
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		SHOW(cu.cuMemAlloc_v2(&q, 1000));
		SHOW(cu.cuMemFree_v2(p));
		SHOW(cu.cuMemGetInfo_v2(&n, &n));
		free(malloc(1000));
		exit(3);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
	SHOW(cu.cuMemAlloc_v2(&q, 1000));
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemFree_v2(q));
}

// errno is the program's.
static void errors(void)
{
	CUdeviceptr p;
	load();
	errno = 4711;
	OK(cu.cuMemAlloc_v2(&p, 5 * MIB));
	OK(cu.cuMemFree_v2(p));
	dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	printf("errno %d\n", errno);
}

// The driver fails on demand: the program sees its errors or a correct block.
static void failures(void)
{
	CUdeviceptr p;
	size_t n;
	load();
	OK(cu.cuMemAlloc_v2(&p, 1000));
	fake.fake_fail("cuMemGetInfo_v2", 1, 700);
	SHOW(cu.cuMemGetInfo_v2(&n, &n));
	fake.fake_fail("cuPointerGetAttribute", 1, 700);
	SHOW(cu.cuPointerGetAttribute(&n, 7, p));
	fake.fake_fail("cuDeviceTotalMem_v2", 1, 700);
	SHOW(cu.cuDeviceTotalMem_v2(&n, 0));
	fake.fake_fail("cuMemAllocManaged", 1, 700);
	SHOW(cu.cuMemAllocManaged(&p, MIB, 1));
	fake.fake_fail("cuMemAlloc_v2", 1, 700);
	SHOW(cu.cuMemAlloc_v2(&p, 50 * MIB));
	SHOW(cu.cuMemAlloc_v2(&p, 50 * MIB));
	memset((void *)p, 1, 50 * MIB);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"pointers", pointers},
		{"contextless", contextless},
		{"uninitialised", uninitialised},
		{"ranges", ranges},
		{"info", info},
		{"foreign", foreign},
		{"capture", capture},
		{"ipc", ipc},
		{"forked", forked},
		{"errors", errors},
		{"failures", failures},
	};
	RUN(tests);
}
