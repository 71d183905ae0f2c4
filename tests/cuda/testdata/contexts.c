// Contexts that are made, ended and reset, and memory that another device's context reaches.
#include "common.h"

static void contexts(void)
{
	CUcontext primary = load(), mine, now, again;
	CUdeviceptr p, q, small;
	OK(cu.cuMemAlloc_v2(&p, 5 * MIB));
	SHOW(cu.cuCtxDestroy_v2(primary));
	SHOW(cu.cuMemFree_v2(p));
	for (int i = 0; i < 3; i++) {
		OK(cu.cuCtxCreate_v2(&mine, 0, 0));
		OK(cu.cuMemAlloc_v2(&q, 5 * MIB));
		OK(cu.cuMemAlloc_v2(&small, 1000));
		OK(cu.cuMemAlloc_v2(&p, 1000));
		OK(cu.cuMemFree_v2(p));
		memset((void *)q, 1, 5 * MIB);
		SHOW(cu.cuCtxDestroy_v2(mine));
		OK(cu.cuCtxGetCurrent(&now));
		printf("primary is current: %d\n", now == primary);
		SHOW(cu.cuMemFree_v2(q));
		SHOW(cu.cuMemFree_v2(small));
	}
	SHOW(cu.cuCtxDestroy_v2(NULL));
	OK(cu.cuMemAlloc_v2(&p, 5 * MIB));
	OK(cu.cuMemAlloc_v2(&small, 1000));
	SHOW(cu.cuDevicePrimaryCtxReset_v2(0));
	SHOW(cu.cuMemAlloc_v2(&q, 5 * MIB));
	SHOW(cu.cuMemFree_v2(p));
	OK(cu.cuDevicePrimaryCtxRetain(&again, 0));
	printf("same handle: %d\n", again == primary);
	SHOW(cu.cuMemFree_v2(small));
	SHOW(cu.cuMemAlloc_v2(&q, 5 * MIB));
	memset((void *)q, 1, 5 * MIB);
	SHOW(cu.cuMemAlloc_v2(&small, 1000));
	memset((void *)small, 1, 1000);
	SHOW(cu.cuDevicePrimaryCtxRelease_v2(0)); // the last
	SHOW(cu.cuMemFree_v2(q));
	OK(cu.cuDevicePrimaryCtxRetain(&again, 0));
	SHOW(cu.cuMemAlloc_v2(&q, 5 * MIB));
	memset((void *)q, 1, 5 * MIB);
	SHOW(cu.cuMemFree_v2(q));
}

// Work of another device's context that may reach the memory: it is waited for, too.
static void peers(void)
{
	CUcontext one = load(), two;
	CUstream far;
	CUdeviceptr p;
	OK(cu.cuDevicePrimaryCtxRetain(&two, 1));
	SHOW(cu.cuCtxEnablePeerAccess(one, 0));
	OK(cu.cuCtxPushCurrent_v2(two));
	SHOW(cu.cuCtxEnablePeerAccess(one, 0));
	SHOW(cu.cuCtxEnablePeerAccess(one, 0));
	OK(cu.cuStreamCreate(&far, 1));
	OK(cu.cuCtxPopCurrent_v2(&two));
	for (int i = 0; i < 20; i++) {
		size_t n = i % 2 ? 1000 : 5 * MIB;
		OK(cu.cuMemAlloc_v2(&p, n));
		CHECK(fake.fake_busy(p, n, NULL, 0) == 0, "round %d", i);
		OK(cu.cuCtxPushCurrent_v2(two));
		OK(fake.fake_launch(p, n, i, far));
		OK(cu.cuCtxPopCurrent_v2(&two));
		OK(cu.cuMemFree_v2(p));
	}
	OK(cu.cuCtxPushCurrent_v2(two));
	SHOW(cu.cuCtxDisablePeerAccess(one));
	SHOW(cu.cuCtxDisablePeerAccess(one));
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {{"contexts", contexts}, {"peers", peers}};
	RUN(tests);
}
