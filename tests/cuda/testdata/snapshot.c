// A program with blocks of all kinds, which is then refused one. "again" frees some and is refused
// again; "wait" says that it is ready, and waits to be killed.
#include "common.h"
#include "tieralloc.h"
#include <time.h>

static long now(void) // nanoseconds
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void fill(CUstream a, CUstream b, CUdeviceptr *kept)
{
	__typeof__(ta_cuda_malloc) *get = ours("ta_cuda_malloc");
	__typeof__(ta_cuda_free) *give = ours("ta_cuda_free");
	__typeof__(ta_cuda_record_stream) *record = ours("ta_cuda_record_stream");
	const CUmemAllocationProp prop = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle h;
	void *p[64];
	for (int i = 0; i < 64; i++)
		p[i] = get(700 + i * 1000, 0, i % 2 ? a : b);
	for (int i = 0; i < 64; i += 3)
		give(p[i], 0, 0, i % 2 ? a : b);
	for (int i = 0; i < 6; i++)
		p[i] = get(3 * MIB + i, 0, a);
	give(p[1], 0, 0, a);
	give(p[3], 0, 0, a);
	record(p[4], b);
	OK(fake.fake_launch((CUdeviceptr)p[4], MIB, 1, b));
	give(p[4], 0, 0, a); // pending
	OK(cu.cuMemAlloc_v2(&kept[0], 1000));
	OK(cu.cuMemAlloc_v2(&kept[1], 5 * MIB));
	OK(cu.cuMemAlloc_v2(&kept[2], 7 * MIB));
	OK(cu.cuMemFree_v2(kept[2]));
	OK(cu.cuMemAllocManaged(&kept[3], 3 * MIB, 1));
	OK(cu.cuMemCreate(&h, 2 * MIB, &prop, 0));
	OK(cu.cuMemAllocManaged(&kept[4], 4 * MIB, 1));
	OK(cu.cuMemFree_v2(kept[4]));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	CUdeviceptr kept[8], q;
	CUstream a, b;
	load();
	OK(cu.cuStreamCreate(&a, 1));
	OK(cu.cuStreamCreate(&b, 1));
	fill(a, b, kept);
	if (strcmp(mode, "wait") == 0) {
		puts("ready");
		fflush(stdout);
		pause();
	}
	long begun = now();
	SHOW(cu.cuMemAlloc_v2(&q, 60 * MIB));
	long until = now() + 51 * (now() - begun); // snapshots have a fiftieth of a thread's time
	if (strcmp(mode, "again") == 0) {
		OK(cu.cuMemFree_v2(kept[1]));
		while (now() < until)
			usleep(1000);
		SHOW(cu.cuMemAlloc_v2(&q, 61 * MIB));
	}
	return 0;
}
