// The C API, found as a program finds it that knows the library but is not linked with it.
#include "common.h"
#include "tieralloc.h"

#define FUNCTIONS(F) \
	F(ta_cuda_malloc) \
	F(ta_cuda_free) \
	F(ta_cuda_record_stream) \
	F(ta_cuda_malloc_batch) \
	F(ta_cuda_warmup) \
	F(ta_cuda_trim) \
	F(ta_cuda_trim_to) \
	F(ta_cuda_pool_begin) \
	F(ta_cuda_pool_end) \
	F(ta_cuda_pool_release)
static struct {
#define MEMBER(name) __typeof__(name) *name;
	FUNCTIONS(MEMBER)
} ta;

static void find(void)
{
#define TAKE(name) CHECK((ta.name = (__typeof__(name) *)dlsym(RTLD_DEFAULT, #name)) != NULL, #name);
	FUNCTIONS(TAKE)
}

static CUdeviceptr malloc_on(size_t n, CUstream s)
{
	CUdeviceptr p = (CUdeviceptr)ta.ta_cuda_malloc((ssize_t)n, 0, s);
	CHECK(p != 0, "%zu bytes: %s", n, strerror(errno));
	CHECK(p % 512 == 0, "%jx", (uintmax_t)p);
	return p;
}

static void free_on(CUdeviceptr p, CUstream s) { ta.ta_cuda_free((void *)p, 0, 0, s); }

static void arguments(void)
{
	size_t sizes[] = {1000};
	int counts[] = {1}, negative[] = {-1};
	void *out[1];
	errno = 0;
	CHECK(ta.ta_cuda_malloc(1000, 0, NULL) == NULL && errno == ENODEV, "errno %d", errno);
	ta.ta_cuda_free((void *)0x1000, 1000, 0, NULL);
	ta.ta_cuda_trim();
	CHECK(ta.ta_cuda_trim_to(0, 0) == -1 && errno == ENODEV, "errno %d", errno);
	load();
	CHECK(ta.ta_cuda_malloc(0, 0, NULL) == NULL, "something for nothing");
	CHECK(ta.ta_cuda_malloc(-1, 0, NULL) == NULL && errno == ENOMEM, "errno %d", errno);
	CHECK(ta.ta_cuda_malloc(1l << 50, 0, NULL) == NULL && errno == ENOMEM, "errno %d", errno);
	CHECK(ta.ta_cuda_malloc(1000, 7, NULL) == NULL && errno == ENODEV, "errno %d", errno);
	CHECK(ta.ta_cuda_malloc(1000, -1, NULL) == NULL && errno == ENODEV, "errno %d", errno);
	CHECK(
		ta.ta_cuda_malloc_batch(0, NULL, NULL, out, 1) == -1 && errno == EINVAL, "errno %d", errno);
	CHECK(ta.ta_cuda_malloc_batch(0, NULL, sizes, NULL, 1) == -1 && errno == EINVAL, "errno %d",
		errno);
	CHECK(ta.ta_cuda_malloc_batch(0, NULL, sizes, out, -1) == -1 && errno == EINVAL, "errno %d",
		errno);
	CHECK(ta.ta_cuda_malloc_batch(0, NULL, sizes, out, 0) == 0, "errno %d", errno);
	CHECK(ta.ta_cuda_warmup(0, sizes, negative, 1) == -1 && errno == EINVAL, "errno %d", errno);
	CHECK(ta.ta_cuda_warmup(9, sizes, counts, 1) == -1 && errno == ENODEV, "errno %d", errno);
	CHECK(ta.ta_cuda_trim_to(-1, 0) == -1 && errno == ENODEV, "errno %d", errno);
	ta.ta_cuda_free(NULL, 0, 0, NULL);
	ta.ta_cuda_free((void *)0x1000, 0, 0, NULL);
	ta.ta_cuda_record_stream((void *)0x1000, NULL);
	ta.ta_cuda_record_stream(NULL, NULL);
}

// A thread without a context, and one in another's: both are left as they were.
static void guests(void)
{
	CUcontext one = load(), two, now;
	int mode = 0;
	OK(cu.cuCtxCreate_v2(&two, 0, 1));
	CUdeviceptr p = malloc_on(5 * MIB, NULL), q = (CUdeviceptr)ta.ta_cuda_malloc(1000, 1, NULL), r;
	OK(cu.cuCtxGetCurrent(&now));
	CHECK(now == two, "another context is current");
	int device = -1;
	OK(cu.cuPointerGetAttribute(&device, 9, p));
	CHECK(device == 0, "device %d", device);
	OK(cu.cuPointerGetAttribute(&device, 9, q));
	CHECK(device == 1, "device %d", device);
	OK(cu.cuCtxSetCurrent(NULL));
	OK(cu.cuCtxPopCurrent_v2(&now));
	CHECK(now == one, "the stack of contexts has changed");
	OK(cu.cuCtxGetCurrent(&now));
	CHECK(now == NULL, "a context is current");
	r = malloc_on(70 * MIB, NULL);
	OK(cu.cuCtxGetCurrent(&now));
	CHECK(now == NULL, "a context is left current");
	OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == 0, "mode %d is left", mode);
	free_on(p, NULL);
	ta.ta_cuda_free((void *)q, 1000, 1, NULL);
	OK(cu.cuMemFree_v2(r));
	CHECK(cu.cuMemFree_v2(r) != 0, "freed twice");
}

// The same stream has its block again at once; another one not before it is safe.
static void reuse(void)
{
	static const size_t sizes[] = {512, 70000, 2 * MIB, 5 * MIB, 30 * MIB};
	CUstream a, b;
	load();
	OK(cu.cuStreamCreate(&a, 1));
	OK(cu.cuStreamCreate(&b, 1));
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t n = sizes[i];
		CUdeviceptr p = malloc_on(n, a);
		OK(fake.fake_launch(p, n, 1, a));
		free_on(p, a);
		CUdeviceptr q = malloc_on(n, a);
		CHECK(p == q, "%zu bytes: not at once for the same stream", n);
		OK(fake.fake_launch(q, n, 2, a));
		free_on(q, a);
		q = malloc_on(n, b);
		CHECK(fake.fake_busy(q, n, b, 1) == 0, "%zu bytes: busy", n);
		OK(fake.fake_launch(q, n, 3, b));
		free_on(q, b);
		OK(cu.cuMemAlloc_v2(&p, n));
		CHECK(fake.fake_busy(p, n, NULL, 0) == 0, "%zu bytes: busy for all", n);
		OK(fake.fake_launch(p, n, 4, a));
		ta.ta_cuda_record_stream((void *)p, a);
		free_on(p, b);
		q = malloc_on(n, b);
		CHECK(fake.fake_busy(q, n, b, 1) == 0, "%zu bytes: busy on a recorded stream", n);
		free_on(q, b);
		fake.fake_complete_all();
	}
}

static void batch(void)
{
	size_t sizes[] = {512, MIB, 0, 5 * MIB, 512};
	size_t much[] = {512, 100 * MIB, 1ul << 40};
	void *out[5];
	load();
	OK(ta.ta_cuda_malloc_batch(0, NULL, sizes, out, 5));
	for (int i = 0; i < 5; i++) {
		CHECK((out[i] == NULL) == (sizes[i] == 0), "block %d", i);
		for (int j = 0; j < i; j++)
			CHECK(out[i] == NULL || out[i] != out[j], "%d and %d are the same", i, j);
		if (out[i] != NULL)
			memset(out[i], 1, sizes[i]);
	}
	for (int i = 0; i < 5; i++)
		ta.ta_cuda_free(out[i], 0, 0, NULL);
	ta.ta_cuda_trim();
	size_t before = fake.fake_used(0);
	CHECK(
		ta.ta_cuda_malloc_batch(0, NULL, much, out, 3) == -1 && errno == ENOMEM, "errno %d", errno);
	CHECK(out[0] == NULL && out[1] == NULL && out[2] == NULL, "%p %p %p", out[0], out[1], out[2]);
	fake.fake_complete_all();
	ta.ta_cuda_trim();
	CHECK(fake.fake_used(0) == before, "%zu bytes are kept", fake.fake_used(0) - before);
}

static void cache(void)
{
	size_t sizes[] = {4096, 65536, 5 * MIB};
	int counts[] = {50, 20, 5};
	load();
	OK(ta.ta_cuda_warmup(0, sizes, counts, 3));
	unsigned long before = fake.fake_calls("cuMemAlloc_v2");
	CUdeviceptr p[75];
	int n = 0;
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < counts[i]; j++)
			p[n++] = malloc_on(sizes[i], NULL);
	CHECK(fake.fake_calls("cuMemAlloc_v2") == before, "%lu calls after the warm-up",
		fake.fake_calls("cuMemAlloc_v2") - before);
	while (n-- > 0)
		free_on(p[n], NULL);
	CHECK(fake.fake_used(0) > 20 * MIB, "%zu bytes cached", fake.fake_used(0));
	OK(ta.ta_cuda_trim_to(0, 20 * MIB));
	CHECK(fake.fake_used(0) <= 20 * MIB, "%zu bytes after a trim to 20 MiB", fake.fake_used(0));
	ta.ta_cuda_trim();
	CHECK(fake.fake_used(0) == 0, "%zu bytes after a trim", fake.fake_used(0));
}

// Blocks of a graph pool are for its captures alone.
static void pools(void)
{
	CUstream s, other;
	CUgraph g;
	load();
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuStreamCreate(&other, 1));
	ta.ta_cuda_pool_begin(0, 1, 2, NULL);
	OK(cu.cuStreamBeginCapture_v2(s, 0));
	CUdeviceptr p = malloc_on(5 * MIB, s);
	int state = 0;
	OK(cu.cuStreamIsCapturing(s, &state));
	CHECK(state == 1, "the capture is in state %d", state);
	free_on(p, s);
	OK(cu.cuStreamEndCapture(s, &g));
	ta.ta_cuda_pool_end(0, 1, 2);
	CUdeviceptr q = malloc_on(5 * MIB, s);
	CHECK(q != p, "a block of the graph's memory");
	free_on(q, s);
	ta.ta_cuda_pool_release(0, 1, 2);
	ta.ta_cuda_trim();
	CHECK(fake.fake_used(0) == 0, "%zu bytes after the pool is gone", fake.fake_used(0));
}

enum { THREADS = 8, STREAMS = 16, ROUNDS = 2000, SLOTS = 24 };
static CUstream streams[STREAMS];

static void *work(void *seed)
{
	uint64_t x = 88172645463325252u * (2 * (uintptr_t)seed + 1);
	struct {
		CUdeviceptr p;
		size_t n;
		CUstream s;
	} slot[SLOTS] = {{0}};
	for (int i = 0; i < ROUNDS; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		unsigned k = x % SLOTS, t = x >> 8 & (STREAMS - 1), u = x >> 12 & (STREAMS - 1);
		if (slot[k].p != 0) {
			free_on(slot[k].p, slot[k].s);
			slot[k].p = 0;
			continue;
		}
		slot[k].n = (x >> 16 & 1 ? 512 : 300000) * (1 + (x >> 20) % 8);
		slot[k].s = streams[t];
		slot[k].p = malloc_on(slot[k].n, slot[k].s);
		CHECK(fake.fake_busy(slot[k].p, slot[k].n, slot[k].s, 1) == 0, "%zu bytes in round %d",
			slot[k].n, i);
		CUcontext c;
		OK(cu.cuDevicePrimaryCtxRetain(&c, 0));
		OK(cu.cuCtxSetCurrent(c));
		OK(fake.fake_touch(slot[k].p, slot[k].n, i, slot[k].s));
		if (x >> 24 & 1) { // on another stream that nothing orders: it must be recorded
			OK(fake.fake_touch(slot[k].p, slot[k].n, i, streams[u]));
			ta.ta_cuda_record_stream((void *)slot[k].p, streams[u]);
		}
		if ((x >> 28) % 8 == 0)
			fake.fake_complete(streams[u]);
		if (x >> 32 & 1)
			OK(cu.cuCtxSetCurrent(NULL));
	}
	for (unsigned k = 0; k < SLOTS; k++)
		if (slot[k].p != 0)
			free_on(slot[k].p, slot[k].s);
	return NULL;
}

static void storm(void)
{
	pthread_t t[THREADS];
	load();
	for (int i = 0; i < STREAMS; i++)
		OK(cu.cuStreamCreate(&streams[i], i % 4 != 0));
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, work, (void *)(i + 1)) == 0, "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	fake.fake_complete_all();
	ta.ta_cuda_trim();
	CHECK(fake.fake_used(0) == 0, "%zu bytes are kept", fake.fake_used(0));
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"arguments", arguments},
		{"guests", guests},
		{"reuse", reuse},
		{"batch", batch},
		{"cache", cache},
		{"pools", pools},
		{"storm", storm},
	};
	find();
	RUN(tests);
}
