// What limits a program sees, and what happens at them. The first argument is the case.
#include "common.h"

static void see(void)
{
	size_t free, total, all;
	OK(cu.cuMemGetInfo_v2(&free, &total));
	OK(cu.cuDeviceTotalMem_v2(&all, 0));
	printf("free %zu of %zu MiB, device %zu\n", free / MIB, total / MIB, all / MIB);
}

// Takes blocks of 10 MiB until there are no more; prints how many and what they are.
static int take(CUdeviceptr *p, int most)
{
	int n = 0, managed = 0;
	CUresult e = 0;
	while (n < most && (e = cu.cuMemAlloc_v2(&p[n], 10 * MIB)) == 0) {
		unsigned is = 0;
		memset((void *)p[n], n, 10 * MIB);
		OK(cu.cuPointerGetAttribute(&is, 8, p[n]));
		managed += is != 0;
		n++;
	}
	printf("%d blocks, %d on the host, then %d\n", n, managed, e);
	return n;
}

static void fill(void)
{
	CUdeviceptr p[200], q;
	CUstream s;
	load();
	OK(cu.cuStreamCreate(&s, 1));
	see();
	int n = take(p, 20);
	see();
	for (int i = 0; i < n; i++) {
		CHECK(*(char *)p[i] == (char)i, "block %d", i);
		OK(fake.fake_launch(p[i], 10 * MIB, i, s)); // still at work when it is freed
		OK(cu.cuMemFree_v2(p[i]));
	}
	see();
	SHOW(cu.cuMemAlloc_v2(&q, 30 * MIB)); // of another size: the cache is in the way
	SHOW(cu.cuMemFree_v2(q));
	n = take(p, 20);
	for (int i = 0; i < n; i++)
		OK(cu.cuMemFree_v2(p[i]));
}

// Memory that the driver serves itself counts as well.
static void foreign(void)
{
	const CUmemAllocationProp prop = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle h;
	CUmipmappedArray m;
	CUdeviceptr p, q;
	load();
	SHOW(cu.cuMemAllocManaged(&p, 50 * MIB, 1));
	SHOW(cu.cuMemAlloc_v2(&q, 30 * MIB));
	see();
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemAlloc_v2(&q, 30 * MIB));
	see();
	SHOW(cu.cuMemCreate(&h, 40 * MIB, &prop, 0));
	SHOW(cu.cuMemCreate(&h, 30 * MIB, &prop, 0));
	see();
	SHOW(cu.cuMemRelease(h));
	SHOW(cu.cuMipmappedArrayCreate(&m, &(CUDA_ARRAY3D_DESCRIPTOR){2048, 2048, 0, 0x20, 1, 0}, 12));
	see();
	SHOW(cu.cuMipmappedArrayDestroy(m));
	CUDA_ARRAY3D_DESCRIPTOR layered = {256, 256, 64, 0x20, 1, CUDA_ARRAY3D_LAYERED};
	SHOW(cu.cuMipmappedArrayCreate(&m, &layered, 9));
	see();
	SHOW(cu.cuMipmappedArrayDestroy(m));
	see();
}

// What a thread says its memory is for; 1 is hot, 3 cold.
static void hints(void)
{
	CUdeviceptr p;
	int (*set)(int) = (int (*)(int))ours("ta_set_hint");
	load();
	for (int i = 0; i < 2; i++) {
		set(3 - 2 * i);
		SHOW(cu.cuMemAlloc_v2(&p, 40 * MIB));
		printf("%lu on the host\n", fake.fake_calls("cuMemAllocManaged"));
	}
	SHOW(cu.cuMemAlloc_v2(&p, 40 * MIB));
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {{"fill", fill}, {"foreign", foreign}, {"hints", hints}};
	RUN(tests);
}
