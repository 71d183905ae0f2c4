// What matters most: no block is handed out while work on it may be unfinished. The
// driver's own free waits for everything; ours must do as well.
#include "common.h"

enum { THREADS = 8, STREAMS = 16, ROUNDS = 800, SLOTS = 24 };
static CUcontext context;
static CUstream streams[STREAMS];

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

static size_t some_size(uint64_t *x)
{
	static const size_t base[] = {1, 512, 4096, 70000, MIB - 512, MIB, 2 * MIB, 5 * MIB};
	return base[next(x) % (sizeof base / sizeof *base)] + next(x) % 3 * 512;
}

// Freed with work pending on a stream that does not block, and allocated again.
static void pending(void)
{
	static const size_t sizes[] = {512, 4096, MIB, 5 * MIB, 40 * MIB};
	CUdeviceptr p, q;
	CUstream s;
	load();
	OK(cu.cuStreamCreate(&s, 1));
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int j = 0; j < 4; j++) {
			OK(cu.cuMemAlloc_v2(&p, sizes[i]));
			OK(fake.fake_launch(p, sizes[i], 1, s));
			OK(cu.cuMemFree_v2(p));
			OK(cu.cuMemAlloc_v2(&q, sizes[i]));
			CHECK(fake.fake_busy(q, sizes[i], NULL, 0) == 0, "%zu bytes", sizes[i]);
			memset((void *)q, 2, sizes[i]);
			fake.fake_complete_all();
			CHECK(*(char *)q == 2 && ((char *)q)[sizes[i] - 1] == 2, "%zu bytes overwritten",
				sizes[i]);
			OK(cu.cuMemFree_v2(q));
		}
}

// The same with a free by stream: a block is at once free for that stream alone.
static void ordered(void)
{
	CUdeviceptr p, q;
	CUstream a, b;
	load();
	OK(cu.cuStreamCreate(&a, 1));
	OK(cu.cuStreamCreate(&b, 1));
	for (int i = 0; i < 20; i++) {
		size_t n = i % 2 ? 4096 : 5 * MIB;
		OK(cu.cuMemAlloc_v2(&p, n));
		OK(fake.fake_launch(p, n, 1, a));
		OK(cu.cuMemFreeAsync(p, a));
		OK(cu.cuMemAlloc_v2(&q, n));
		CHECK(fake.fake_busy(q, n, NULL, 0) == 0, "round %d", i);
		if (i % 5 == 0) {
			OK(cu.cuStreamDestroy_v2(a));
			OK(cu.cuStreamCreate(&a, 1));
		}
		OK(fake.fake_launch(q, n, 1, b));
		OK(cu.cuMemFreeAsync(q, b));
	}
}

static void held(void)
{
	CUdeviceptr p, q;
	CUstream s, other;
	CUgraph g;
	load();
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuStreamCreate(&other, 1));
	OK(cu.cuMemAlloc_v2(&p, 5 * MIB));
	OK(fake.fake_launch(p, 5 * MIB, 1, other));
	OK(cu.cuStreamBeginCapture_v2(s, 2));
	SHOW(cu.cuMemFree_v2(p));
	OK(cu.cuMemAlloc_v2(&q, 5 * MIB));
	CHECK(fake.fake_busy(q, 5 * MIB, NULL, 0) == 0, "in a capture");
	SHOW(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuMemFree_v2(q));
	OK(cu.cuMemAlloc_v2(&q, 5 * MIB));
	CHECK(fake.fake_busy(q, 5 * MIB, NULL, 0) == 0, "after it");
}

static void *work(void *seed)
{
	uint64_t x = 88172645463325252u * (2 * (uintptr_t)seed + 1);
	struct {
		CUdeviceptr p;
		size_t n;
	} slot[SLOTS] = {{0}};
	OK(cu.cuCtxSetCurrent(context));
	for (int i = 0; i < ROUNDS; i++) {
		unsigned k = next(&x) % SLOTS;
		if (slot[k].p != 0) {
			OK(cu.cuMemFree_v2(slot[k].p));
			slot[k].p = 0;
			continue;
		}
		size_t n = some_size(&x);
		OK(cu.cuMemAlloc_v2(&slot[k].p, n));
		slot[k].n = n;
		CHECK(fake.fake_busy(slot[k].p, n, NULL, 0) == 0, "%zu bytes in round %d", n, i);
		if (next(&x) % 2)
			OK(fake.fake_touch(slot[k].p, n, i, streams[next(&x) % STREAMS]));
		if (next(&x) % 16 == 0)
			fake.fake_complete(streams[next(&x) % STREAMS]);
	}
	for (unsigned k = 0; k < SLOTS; k++)
		if (slot[k].p != 0)
			OK(cu.cuMemFree_v2(slot[k].p));
	return NULL;
}

static void storm_of(void *(*run)(void *))
{
	pthread_t t[THREADS];
	context = load();
	for (int i = 0; i < STREAMS; i++)
		OK(cu.cuStreamCreate(&streams[i], i % 4 != 0));
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, run, (void *)(i + 1)) == 0, "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	OK(cu.cuCtxSynchronize());
}

static void storm(void) { storm_of(work); }

// One stream for each block, as programs do that free by stream.
static void *work_by_stream(void *seed)
{
	uint64_t x = 6364136223846793005u * (2 * (uintptr_t)seed + 1);
	struct {
		CUdeviceptr p;
		size_t n;
		CUstream s;
	} slot[SLOTS] = {{0}};
	OK(cu.cuCtxSetCurrent(context));
	for (int i = 0; i < ROUNDS; i++) {
		unsigned k = next(&x) % SLOTS;
		if (slot[k].p != 0) {
			OK(cu.cuMemFreeAsync(slot[k].p, slot[k].s));
			slot[k].p = 0;
			continue;
		}
		slot[k].n = some_size(&x);
		slot[k].s = streams[next(&x) % STREAMS];
		OK(cu.cuMemAlloc_v2(&slot[k].p, slot[k].n));
		CHECK(fake.fake_busy(slot[k].p, slot[k].n, NULL, 0) == 0, "%zu bytes in round %d",
			slot[k].n, i);
		OK(fake.fake_touch(slot[k].p, slot[k].n, i, slot[k].s));
		if (next(&x) % 8 == 0)
			fake.fake_complete(streams[next(&x) % STREAMS]);
	}
	return NULL;
}

static void streams_storm(void) { storm_of(work_by_stream); }

// How often the driver itself is called for a thousand pairs of each size.
static void served(void)
{
	static const size_t sizes[] = {512, 100000, 2 * MIB, 30 * MIB};
	load();
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		unsigned long before = fake.fake_calls("cuMemAlloc_v2") + fake.fake_calls("cuMemFree_v2");
		for (int j = 0; j < 1000; j++) {
			CUdeviceptr p;
			OK(cu.cuMemAlloc_v2(&p, sizes[i]));
			OK(cu.cuMemFree_v2(p));
		}
		printf(
			"%lu\n", fake.fake_calls("cuMemAlloc_v2") + fake.fake_calls("cuMemFree_v2") - before);
	}
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"pending", pending},
		{"ordered", ordered},
		{"held", held},
		{"storm", storm},
		{"streams", streams_storm},
		{"served", served},
	};
	RUN(tests);
}
