// Contexts and captures that begin and end while others are at work, and who is asked for
// whose memory.
#include "common.h"
#include <time.h>

// Up to a number of times in each of two threads, for no longer than some seconds.
enum { ROUNDS = 20000, SECONDS = 2 };
static time_t until;

static void twice(void *(*f)(void *))
{
	pthread_t a, b;
	until = time(NULL) + SECONDS;
	OK(pthread_create(&a, NULL, f, NULL));
	OK(pthread_create(&b, NULL, f, NULL));
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	puts("done");
}

static void use(void)
{
	CUdeviceptr p;
	OK(cu.cuMemAlloc_v2(&p, 4 * MIB));
	memset((void *)p, 1, 64);
	OK(cu.cuMemFree_v2(p));
}

// A handle that one thread's context leaves may be the other's next.
static void *destroy(void *unused)
{
	CUcontext c;
	for (int i = 0; i < ROUNDS && time(NULL) < until; i++) {
		OK(cu.cuCtxCreate_v2(&c, 0, 0));
		use();
		OK(cu.cuCtxDestroy_v2(c));
	}
	return unused;
}

static void *release(void *unused)
{
	CUcontext c;
	for (int i = 0; i < ROUNDS && time(NULL) < until; i++) {
		OK(cu.cuDevicePrimaryCtxRetain(&c, 1));
		OK(cu.cuCtxPushCurrent_v2(c));
		use();
		OK(cu.cuCtxPopCurrent_v2(&c));
		OK(cu.cuDevicePrimaryCtxRelease_v2(1));
	}
	return unused;
}

static void destroys(void)
{
	load();
	twice(destroy);
}

static void releases(void)
{
	load();
	twice(release);
}

static CUcontext context;

static void *frees(void *unused)
{
	OK(cu.cuCtxSetCurrent(context));
	while (time(NULL) < until)
		use();
	return unused;
}

// A capture of one thread is not spoiled by the frees of another.
static void captures(void)
{
	pthread_t a;
	CUstream s;
	CUgraph g;
	int spoiled = 0;
	context = load();
	until = time(NULL) + SECONDS;
	OK(cu.cuStreamCreate(&s, 1));
	OK(pthread_create(&a, NULL, frees, NULL));
	while (time(NULL) < until) {
		OK(cu.cuStreamBeginCapture_v2(s, 1));
		for (volatile int i = 0; i < 200; i++)
			;
		spoiled += cu.cuStreamEndCapture(s, &g) != CUDA_SUCCESS;
	}
	pthread_join(a, NULL);
	printf("%d spoiled\n", spoiled);
}

// The legacy stream cannot capture; nothing is held afterwards.
static void legacy(void)
{
	CUdeviceptr p, q;
	load();
	for (intptr_t s = 0; s < 2; s++)
		printf("%d\n", cu.cuStreamBeginCapture_v2((CUstream)s, 0) != CUDA_SUCCESS);
	for (int i = 0; i < 100; i++) {
		OK(cu.cuMemAlloc_v2(&p, 100 * MIB));
		OK(cu.cuMemFree_v2(p));
	}
	SHOW(cu.cuMemAlloc_v2(&q, 900 * MIB));
}

// The block that the context of device 0 gets after work on p that was given in that of
// device 1 is not at work.
static void reused(CUdeviceptr p, size_t n)
{
	CUdeviceptr q;
	void *(*stream_ordered)(ssize_t, int, void *) = (void *(*)(ssize_t, int, void *))ours(
		"ta_cuda_malloc");
	if (stream_ordered != NULL)
		q = (CUdeviceptr)stream_ordered((ssize_t)n, 0, NULL);
	else
		OK(cu.cuMemAlloc_v2(&q, n));
	printf("busy %d\n", p == q && fake.fake_busy(q, n, NULL, 1));
	OK(cu.cuMemAlloc_v2(&q, n));
	printf("busy %d\n", p == q && fake.fake_busy(q, n, NULL, 0));
}

// Stream 0 is that of the current context, not of the block's.
static void othercontext(void)
{
	CUcontext one = load(), two;
	OK(cu.cuDevicePrimaryCtxRetain(&two, 1));
	OK(cu.cuCtxPushCurrent_v2(two));
	OK(cu.cuCtxEnablePeerAccess(one, 0));
	OK(cu.cuCtxPopCurrent_v2(&two));
	for (size_t n = 1000; n <= 5 * MIB; n += 4 * MIB) {
		CUdeviceptr p;
		CUstream s;
		for (int own = 0; own < 2; own++) {
			OK(cu.cuMemAlloc_v2(&p, n));
			OK(cu.cuCtxPushCurrent_v2(two));
			OK(cu.cuStreamCreate(&s, 1));
			s = own ? s : NULL;
			OK(fake.fake_launch(p, n, 1, s));
			if (own)
				OK(cu.cuCtxPopCurrent_v2(&two));
			SHOW(cu.cuMemFreeAsync(p, s));
			if (!own)
				OK(cu.cuCtxPopCurrent_v2(&two));
			reused(p, n);
		}
	}
}

// A copy between contexts needs no peer access.
static void copies(void)
{
	CUcontext one = load(), two;
	CUdeviceptr p, q;
	CUstream s;
	OK(cu.cuMemAlloc_v2(&p, 4 * MIB));
	OK(cu.cuDevicePrimaryCtxRetain(&two, 1));
	OK(cu.cuCtxPushCurrent_v2(two));
	OK(cu.cuMemAlloc_v2(&q, 4 * MIB));
	OK(cu.cuStreamCreate(&s, 1));
	SHOW(cu.cuMemcpyPeerAsync(p, one, q, two, 4 * MIB, s));
	OK(cu.cuCtxPopCurrent_v2(&two));
	SHOW(cu.cuMemFree_v2(p));
	reused(p, 4 * MIB);
}

// The handles of a context that has ended, and a copy into the next one with them.
static void copied(void)
{
	CUcontext one = load(), two;
	CUdeviceptr p, q, again;
	CUstream s;
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuMemAlloc_v2(&q, 4 * MIB));
	for (int i = 0; i < 3; i++) {
		OK(cu.cuCtxCreate_v2(&two, 0, 1));
		OK(cu.cuMemAlloc_v2(&p, 5000));
		OK(cu.cuCtxPopCurrent_v2(&two));
		OK(cu.cuMemcpyPeerAsync(p, two, q, one, 5000, s));
		OK(cu.cuCtxPushCurrent_v2(two));
		OK(cu.cuMemFree_v2(p));
		OK(cu.cuMemAlloc_v2(&again, 5000));
		printf("busy %d\n", p == again && fake.fake_busy(again, 5000, NULL, 0));
		fake.fake_complete_all();
		OK(cu.cuCtxDestroy_v2(two));
	}
}

static const CUmemAllocationProp on_second = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 1}};

// Memory without an address on another device than the current one: room is made there,
// and nothing that is at work there is taken for idle.
static void created(void)
{
	CUmemGenericAllocationHandle h;
	CUdeviceptr keep, big, p, q;
	CUstream s;
	CUcontext two;
	load();
	OK(cu.cuDevicePrimaryCtxRetain(&two, 1));
	OK(cu.cuCtxPushCurrent_v2(two));
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuMemAlloc_v2(&keep, 5000));
	OK(cu.cuMemAlloc_v2(&p, 5000));
	OK(cu.cuMemAlloc_v2(&big, 60 * MIB));
	OK(fake.fake_launch(p, 5000, 1, s));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuMemFree_v2(big));
	OK(cu.cuCtxPopCurrent_v2(&two));
	SHOW(cu.cuMemCreate(&h, 60 * MIB, &on_second, 0));
	OK(cu.cuCtxPushCurrent_v2(two));
	OK(cu.cuMemAlloc_v2(&q, 5000));
	printf("busy %d\n", p == q && fake.fake_busy(q, 5000, NULL, 0));
	OK(cu.cuCtxPopCurrent_v2(&two));
	OK(cu.cuMemRelease(h));
	OK(cu.cuCtxPopCurrent_v2(&two)); // the first device's, too
	SHOW(cu.cuMemCreate(&h, 60 * MIB, &on_second, 0));
}

// What one context has, another one of the device does not see as free.
static void others(void)
{
	size_t f, t;
	CUdeviceptr p;
	CUcontext mine;
	load();
	OK(cu.cuMemAlloc_v2(&p, 90 * MIB));
	OK(cu.cuCtxCreate_v2(&mine, 0, 0));
	OK(cu.cuMemGetInfo_v2(&f, &t));
	printf("free %zu of %zu MiB\n", f / MIB, t / MIB);
	SHOW(cu.cuMemAlloc_v2(&p, f - 2 * MIB));
	SHOW(cu.cuMemAlloc_v2(&p, 4 * MIB));
}

// A child that is the first to use CUDA; the parent has not.
static void child(void)
{
	int status;
	pid_t c = fork();
	if (c == 0) {
		others();
		exit(0);
	}
	waitpid(c, &status, 0);
	printf("status %d\n", status);
}

// What the driver refuses is refused.
static void refusals(void)
{
	CUdeviceptr p;
	CUstream s;
	CUcontext c;
	load();
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuMemAlloc_v2(&p, 6 * MIB));
	printf("%d\n", cu.cuMemFreeAsync(p, s) != CUDA_SUCCESS);
	OK(cu.cuCtxPopCurrent_v2(&c));
	printf("%d\n", cu.cuMemFreeAsync(p, NULL) != CUDA_SUCCESS);
	OK(cu.cuCtxPushCurrent_v2(c));
	SHOW(cu.cuMemFree_v2(p));
}

// An attribute that is set for a block is not the next one's.
static void attributes(void)
{
	const size_t sizes[] = {1000, 5 * MIB};
	load();
	for (int i = 0; i < 2; i++) {
		CUdeviceptr p;
		int on = 1, was = -1;
		OK(cu.cuMemAlloc_v2(&p, sizes[i]));
		SHOW(cu.cuPointerSetAttribute(&on, 6, p));
		SHOW(cu.cuPointerSetAttribute(&on, 7, p));
		OK(cu.cuMemFree_v2(p));
		OK(cu.cuMemAlloc_v2(&p, sizes[i]));
		SHOW(cu.cuPointerGetAttribute(&was, 6, p));
		printf("%d\n", was);
	}
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {{"destroys", destroys}, {"releases", releases},
		{"captures", captures}, {"legacy", legacy}, {"othercontext", othercontext},
		{"copies", copies}, {"copied", copied}, {"created", created}, {"others", others},
		{"child", child}, {"refusals", refusals}, {"attributes", attributes}};
	RUN(tests);
}
