// Many threads allocate from the driver's default pools, which the heap serves: on streams of their
// own, and with frees on other streams.
#include "pools.h"

enum { THREADS = 6, STREAMS = 12, ROUNDS = 600, SLOTS = 16 };
static CUcontext context;
static CUstream streams[STREAMS];

// The default streams of threads are different streams under one handle.
static void *by_thread(void *seed)
{
	OK(cu.cuCtxSetCurrent(context));
	for (int i = 0; i < 100; i++) {
		size_t n = sizes[(i + (uintptr_t)seed) % (SIZES - 1)];
		CUdeviceptr p;
		OK(cu.cuMemAllocAsync_ptsz(&p, n, NULL));
		CHECK(fake.fake_busy(p, n, (CUstream)CU_STREAM_PER_THREAD, 1) == 0, "%zu bytes", n);
		OK(fake.fake_touch(p, n, i, (CUstream)CU_STREAM_PER_THREAD));
		OK(cu.cuMemFreeAsync_ptsz(p, NULL));
		if (i % 8 == 0)
			fake.fake_complete((CUstream)CU_STREAM_PER_THREAD);
	}
	return NULL;
}

static void *by_stream(void *seed)
{
	uint64_t x = 88172645463325252u * (2 * (uintptr_t)seed + 1);
	struct {
		CUdeviceptr p;
		size_t n;
		unsigned s;
	} slot[SLOTS] = {{0}};
	CUevent e;
	OK(cu.cuCtxSetCurrent(context));
	OK(cu.cuEventCreate(&e, 2));
	for (int i = 0; i < ROUNDS; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		unsigned k = x >> 33 & (SLOTS - 1), s = (x >> 40) % STREAMS;
		if (slot[k].p == 0) {
			slot[k].n = sizes[(x >> 48) % (SIZES - 1)];
			slot[k].s = s;
			slot[k].p = take(slot[k].n, streams[s]);
			CHECK(fake.fake_busy(slot[k].p, slot[k].n, streams[s], 1) == 0, "round %d", i);
			OK(fake.fake_touch(slot[k].p, slot[k].n, i, streams[s]));
			continue;
		}
		OK(cu.cuEventRecord(e, streams[slot[k].s]));
		OK(cu.cuStreamWaitEvent(streams[s], e, 0));
		OK(fake.fake_touch(slot[k].p, slot[k].n, i, streams[s]));
		if (i % 16 == 0)
			OK(cu.cuMemFree_v2(slot[k].p));
		else
			OK(cu.cuMemFreeAsync(slot[k].p, streams[s]));
		slot[k].p = 0;
		if (i % 8 == 0)
			fake.fake_complete(streams[s]);
	}
	return NULL;
}

static void all_threads(void *(*work)(void *))
{
	pthread_t t[THREADS];
	context = load();
	for (int i = 0; i < STREAMS; i++)
		OK(cu.cuStreamCreate(&streams[i], i % 4 != 0));
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, work, (void *)(i + 1)) == 0, "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	OK(cu.cuCtxSynchronize());
	CHECK(pooled() == 0, "the driver has served %lu", pooled());
}

static void threads(void) { all_threads(by_thread); }
static void storm(void) { all_threads(by_stream); }

int main(int argc, char **argv)
{
	static const struct test tests[] = {{"threads", threads}, {"storm", storm}};
	RUN(tests);
}
