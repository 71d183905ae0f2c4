// ta_managed_*, against a driver that checks what it is told. The second argument says which
// driver it is: 11, 12 or 13.
#include "common.h"
#include "tieralloc.h"

#define FUNCTIONS(F) \
	F(ta_managed_malloc) \
	F(ta_managed_free) \
	F(ta_managed_advise) \
	F(ta_managed_prefetch) \
	F(ta_managed_discard) \
	F(ta_managed_discard_prefetch) \
	F(ta_managed_get)
static struct {
#define MEMBER(name) __typeof__(name) *name;
	FUNCTIONS(MEMBER)
} ta;

enum {
	INVALID = 1,
	NOT_INITIALIZED = 3,
	NO_CONTEXT = 201,
	NO_DEVICE = 101,
	NOT_SUPPORTED = 801,
	NONE = -2,
	ON_HOST = -1,
	PAGE = 4096
};
enum {
	READ_MOSTLY = 1,
	PREFERRED,
	ACCESSED_BY,
	PREFETCHED,
	PREFERRED_KIND,
	PREFERRED_ID,
	PREFETCHED_KIND,
	PREFETCHED_ID
};

static int version;
static size_t (*places)(void);
static CUcontext context;
static CUstream stream;
static const ta_location device0 = {TA_AT_DEVICE, 0}, device1 = {TA_AT_DEVICE, 1},
						 host = {TA_AT_HOST, 0}, node2 = {TA_AT_HOST_NUMA, 2},
						 here = {TA_AT_HOST_NUMA_CURRENT, 0}, nowhere = {0, 0};

static void find(void)
{
#define TAKE(name) CHECK((ta.name = (__typeof__(name) *)dlsym(RTLD_DEFAULT, #name)) != NULL, #name);
	FUNCTIONS(TAKE)
}

static void begin(void)
{
	context = load();
	places = (size_t(*)(void))dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "fake_places");
	CHECK(places != NULL, "no fake_places");
	OK(cu.cuStreamCreate(&stream, 1));
}

static char *get_some(size_t n)
{
	char *p = ta.ta_managed_malloc(n, 0);
	CHECK(p != NULL, "%zu bytes: %s", n, strerror(errno));
	return p;
}

static int get(void *p, size_t n, int attribute)
{
	int out = 12345;
	OK(ta.ta_managed_get(p, n, attribute, &out, 1));
	return out;
}

static int one(void *p, size_t n, ta_location where, CUstream s)
{
	return ta.ta_managed_prefetch(&p, &n, 1, &where, 1, s);
}

#define IS(call, want) \
	do { \
		int got_ = (int)(call); \
		CHECK(got_ == (int)(want), "%d, want %d", got_, (int)(want)); \
	} while (0)

// Before there is a driver, and what needs none to be wrong.
static void absent(void)
{
	char *p = (char *)&version;
	void *list[] = {p, p};
	size_t sizes[] = {4, 4};
	ta_location two[] = {device0, host};
	int out;
	errno = 0;
	CHECK(ta.ta_managed_malloc(1000, 0) == NULL && errno == ENODEV, "errno %d", errno);
	CHECK(ta.ta_managed_malloc(0, 0) == NULL && errno == EINVAL, "errno %d", errno);
	OK(ta.ta_managed_free(NULL));
	IS(ta.ta_managed_free(p), NOT_INITIALIZED);
	IS(ta.ta_managed_advise(p, 4, TA_SET_READ_MOSTLY, nowhere), NOT_INITIALIZED);
	IS(ta.ta_managed_prefetch(list, sizes, 2, two, 2, NULL), NOT_INITIALIZED);
	IS(ta.ta_managed_discard(list, sizes, 2, NULL), NOT_INITIALIZED);
	IS(ta.ta_managed_discard_prefetch(list, sizes, 2, two, 1, NULL), NOT_INITIALIZED);
	IS(ta.ta_managed_get(p, 4, READ_MOSTLY, &out, 1), NOT_INITIALIZED);
}

static void arguments(void)
{
	begin();
	char *p = get_some(3 * MIB);
	void *list[] = {p, p + MIB, p + 2 * MIB};
	size_t sizes[] = {MIB, MIB, MIB}, long_sizes[] = {MIB, MIB, MIB + 1},
		   no_sizes[] = {MIB, 0, MIB};
	ta_location three[] = {device0, host, device1}, wrong[] = {device0, host, nowhere},
				early[] = {{5, 0}, host, host}, none[] = {device0, {TA_AT_DEVICE, 7}, host};
	int out[4];
	CHECK(ta.ta_managed_malloc(1000, 7) == NULL && errno == ENODEV, "errno %d", errno);
	CHECK(ta.ta_managed_malloc(1000, -1) == NULL && errno == ENODEV, "errno %d", errno);
	CHECK(ta.ta_managed_malloc(1ul << 50, 0) == NULL && errno == ENOMEM, "errno %d", errno);
	CHECK(ta.ta_managed_malloc(SIZE_MAX, 0) == NULL && errno == ENOMEM, "errno %d", errno);
	fake.fake_fail("cuMemAllocManaged", 1, NOT_SUPPORTED);
	CHECK(ta.ta_managed_malloc(1000, 0) == NULL && errno == ENOTSUP, "errno %d", errno);
	IS(ta.ta_managed_free(p + 1), INVALID);
	for (int advice = -1; advice < 9; advice++)
		for (int kind = -1; kind < 7; kind++) {
			int names = advice == 3 || advice == 5 || advice == 6, numa = kind == 3 || kind == 4;
			int ok = advice >= 1 && advice <= 6 &&
				(!names || (kind >= 1 && kind <= (advice == 3 ? 4 : 2)));
			int want = !ok ? INVALID : names && numa && version < 12 ? NOT_SUPPORTED : 0;
			IS(ta.ta_managed_advise(p, PAGE, advice, (ta_location){kind, 1}), want);
		}
	IS(ta.ta_managed_advise(p, PAGE, TA_SET_PREFERRED_LOCATION, (ta_location){TA_AT_DEVICE, -1}),
		INVALID);
	IS(ta.ta_managed_advise(p, PAGE, TA_SET_PREFERRED_LOCATION, (ta_location){TA_AT_HOST_NUMA, -1}),
		INVALID);
	IS(ta.ta_managed_advise(p, PAGE, TA_SET_PREFERRED_LOCATION, (ta_location){TA_AT_DEVICE, 7}),
		NO_DEVICE);
	IS(ta.ta_managed_advise(p, 3 * MIB + 1, TA_SET_READ_MOSTLY, nowhere), INVALID);
	IS(ta.ta_managed_advise(p, 0, TA_SET_READ_MOSTLY, nowhere), INVALID);
	IS(ta.ta_managed_advise(out, 4, TA_SET_READ_MOSTLY, nowhere), INVALID);
	IS(one(p, PAGE, nowhere, stream), INVALID);
	IS(one(p, PAGE, (ta_location){TA_AT_DEVICE, 7}, stream), NO_DEVICE);
	IS(one(out, 4, device0, stream), INVALID);
	IS(ta.ta_managed_get(p, PAGE, READ_MOSTLY, NULL, 1), INVALID);
	IS(ta.ta_managed_get(p, PAGE, READ_MOSTLY, out, 0), INVALID);
	IS(ta.ta_managed_get(p, PAGE, READ_MOSTLY, out, SIZE_MAX), INVALID);
	IS(ta.ta_managed_get(p, PAGE, 99, out, 1), INVALID);
	IS(ta.ta_managed_get(out, 4, READ_MOSTLY, out, 1), INVALID);
	int (*both[])(void *const *, const size_t *, size_t, const ta_location *, size_t, void *) = {
		ta.ta_managed_prefetch, ta.ta_managed_discard_prefetch};
	for (int i = 0; i < 2; i++) {
		IS(both[i](NULL, sizes, 3, three, 3, stream), INVALID);
		IS(both[i](list, NULL, 3, three, 3, stream), INVALID);
		IS(both[i](list, sizes, 0, three, 0, stream), INVALID);
		IS(both[i](list, sizes, 3, NULL, 3, stream), INVALID);
		IS(both[i](list, sizes, 3, three, 0, stream), INVALID);
		IS(both[i](list, sizes, 3, three, 2, stream), INVALID);
		IS(both[i](list, sizes, 1, three, 3, stream), INVALID);
		if (version < 13) {
			IS(both[i](list, sizes, 3, three, 3, stream), NOT_SUPPORTED);
			continue;
		}
		IS(both[i](list, sizes, 3, wrong, 3, stream), INVALID);
		IS(both[i](list, sizes, 3, early, 3, stream), INVALID);
		IS(both[i](list, sizes, 3, early, 1, stream), INVALID);
		IS(both[i](list, sizes, 3, none, 3, stream), NO_DEVICE);
		IS(both[i](list, long_sizes, 3, three, 3, stream), INVALID);
		IS(both[i](list, no_sizes, 3, three, 3, stream), INVALID);
		IS(both[i](list, sizes, 3, three, 3, NULL), INVALID);
	}
	IS(ta.ta_managed_discard(NULL, sizes, 3, stream), INVALID);
	IS(ta.ta_managed_discard(list, NULL, 3, stream), INVALID);
	IS(ta.ta_managed_discard(list, sizes, 0, stream), INVALID);
	IS(ta.ta_managed_discard(list, long_sizes, 3, stream), version < 13 ? NOT_SUPPORTED : INVALID);
	IS(ta.ta_managed_discard(list, sizes, 3, NULL), version < 13 ? NOT_SUPPORTED : INVALID);
	IS(get(p, 3 * MIB, PREFETCHED), NONE); // nothing of all that was done
	OK(ta.ta_managed_free(p));
	IS(ta.ta_managed_free(p), INVALID);
}

// What is advised is what the driver says.
static void advice(void)
{
	begin();
	char *p = get_some(2 * MIB);
	int by[4];
	IS(get(p, 2 * MIB, READ_MOSTLY), 0);
	OK(ta.ta_managed_advise(p, MIB, TA_SET_READ_MOSTLY, nowhere));
	IS(get(p, MIB, READ_MOSTLY), 1);
	IS(get(p, 2 * MIB, READ_MOSTLY), 0);
	OK(ta.ta_managed_advise(p, MIB, TA_UNSET_READ_MOSTLY, nowhere));
	IS(get(p, MIB, READ_MOSTLY), 0);
	IS(get(p, MIB, PREFERRED), NONE);
	OK(ta.ta_managed_advise(p, 2 * MIB, TA_SET_PREFERRED_LOCATION, device1));
	IS(get(p, 2 * MIB, PREFERRED), 1);
	OK(ta.ta_managed_advise(p, MIB, TA_SET_PREFERRED_LOCATION, host));
	IS(get(p, MIB, PREFERRED), ON_HOST);
	IS(get(p, 2 * MIB, PREFERRED), NONE);
	OK(ta.ta_managed_advise(p, 2 * MIB, TA_UNSET_PREFERRED_LOCATION, nowhere));
	IS(get(p + MIB, MIB, PREFERRED), NONE);
	if (version >= 12) {
		OK(ta.ta_managed_advise(p, MIB, TA_SET_PREFERRED_LOCATION, node2));
		IS(get(p, MIB, PREFERRED_KIND), TA_AT_HOST_NUMA);
		IS(get(p, MIB, PREFERRED_ID), 2);
		OK(ta.ta_managed_advise(p, MIB, TA_SET_PREFERRED_LOCATION, here));
		IS(get(p, MIB, PREFERRED_KIND), TA_AT_HOST_NUMA);
		IS(fake.fake_calls("cuMemAdvise"), 0);
	} else {
		IS(ta.ta_managed_get(p, MIB, PREFERRED_KIND, by, 1), INVALID);
	}
	OK(ta.ta_managed_advise(p, MIB, TA_SET_ACCESSED_BY, device1));
	OK(ta.ta_managed_advise(p, MIB, TA_SET_ACCESSED_BY, host));
	OK(ta.ta_managed_get(p, MIB, ACCESSED_BY, by, 4));
	CHECK(by[0] == 1 && by[1] == ON_HOST && by[2] == NONE && by[3] == NONE, "%d %d %d %d", by[0],
		by[1], by[2], by[3]);
	OK(ta.ta_managed_advise(p, MIB, TA_UNSET_ACCESSED_BY, device1));
	OK(ta.ta_managed_get(p, MIB, ACCESSED_BY, by, 1));
	IS(by[0], ON_HOST);
	OK(ta.ta_managed_free(p));
}

static void singles(void)
{
	begin();
	char *p = get_some(2 * MIB);
	void *list[] = {p};
	size_t size = MIB;
	IS(get(p, MIB, PREFETCHED), NONE);
	OK(one(p, MIB, device1, stream));
	IS(get(p, MIB, PREFETCHED), 1);
	IS(get(p, 2 * MIB, PREFETCHED), NONE);
	OK(one(p, MIB, host, NULL)); // the legacy default stream will do for one
	IS(get(p, MIB, PREFETCHED), ON_HOST);
	IS(one(p, MIB, node2, stream), version < 12 ? NOT_SUPPORTED : 0);
	IS(one(p, MIB, here, stream), version < 12 ? NOT_SUPPORTED : 0);
	IS(ta.ta_managed_discard(list, &size, 1, stream), version < 13 ? NOT_SUPPORTED : 0);
	IS(ta.ta_managed_discard_prefetch(list, &size, 1, &device1, 1, stream),
		version < 13 ? NOT_SUPPORTED : 0);
	IS(fake.fake_calls("cuMemPrefetchBatchAsync"), 0);
	if (version >= 13)
		IS(get(p, MIB, PREFETCHED), 1);
	OK(ta.ta_managed_free(p));
}

// A batch is one call of the driver; places that are equal in a row are told once.
static void batches(void)
{
	enum { N = 1500 };
	static void *list[N];
	static size_t sizes[N];
	static ta_location where[N];
	begin();
	char *p = get_some((size_t)N * PAGE);
	for (int i = 0; i < N; i++) {
		list[i] = p + (size_t)i * PAGE;
		sizes[i] = PAGE;
		where[i] = i < 1000 ? device0 : (ta_location){TA_AT_HOST, i};
	}
	OK(ta.ta_managed_prefetch(list, sizes, N, &device1, 1, stream));
	IS(places(), 1);
	IS(get(p, (size_t)N * PAGE, PREFETCHED), 1);
	OK(ta.ta_managed_prefetch(list, sizes, N, where, N, stream));
	IS(places(), 2);
	IS(get(p, 1000 * PAGE, PREFETCHED), 0);
	IS(get(p + 1000 * PAGE, 500 * PAGE, PREFETCHED), ON_HOST);
	for (int runs = 1; runs <= N; runs += runs < 254 ? 23 : runs < 259 ? 1 : 311) {
		for (int i = 0; i < N; i++)
			where[i] = i >= runs || i % 2 ? node2 : i % 4 ? host : device1;
		where[N - 1] = runs % 2 ? host : where[N - 1];
		OK(ta.ta_managed_discard_prefetch(list, sizes, N, where, N, stream));
		size_t told = 1;
		for (int i = 0; i < N; i++) {
			told += i > 0 && (where[i].kind != where[i - 1].kind);
			IS(get(list[i], PAGE, PREFETCHED_KIND), where[i].kind);
		}
		IS(places(), told);
	}
	IS(fake.fake_calls("cuMemPrefetchBatchAsync"), 2);
	IS(fake.fake_calls("cuPointerGetAttribute"), 0);
	IS(fake.fake_calls("cuMemPrefetchAsync_v2"), 0);
	IS(fake.fake_calls("cuMemDiscardBatchAsync"), 0);
	fake.fake_complete_all();
	memset(p, 7, (size_t)N * PAGE);
	OK(ta.ta_managed_discard(list, sizes, N - 1, stream));
	CHECK(p[0] == 7, "discarded before the stream came to it");
	OK(ta.ta_managed_prefetch(list, sizes, 2, &host, 1, stream));
	fake.fake_complete(stream);
	CHECK((unsigned char)p[0] == 0xdd && p[(N - 1) * PAGE] == 7, "%x %x", p[0], p[(N - 1) * PAGE]);
	OK(ta.ta_managed_free(p));
}

// A thread without a context works in the memory's, and has none afterwards.
static void contextless(void)
{
	CUcontext now, other;
	begin();
	char *p = get_some(2 * MIB), *q = ta.ta_managed_malloc(MIB, 1);
	void *list[] = {p, q};
	size_t sizes[] = {2 * MIB, MIB};
	int device = -1;
	OK(cu.cuPointerGetAttribute(&device, 9, (CUdeviceptr)q));
	IS(device, 1);
	OK(cu.cuCtxSetCurrent(NULL));
	OK(ta.ta_managed_advise(p, MIB, TA_SET_READ_MOSTLY, nowhere));
	OK(one(q, MIB, device1, stream));
	OK(one(p, MIB, device1, NULL));
	IS(get(p, MIB, PREFETCHED), 1);
	if (version >= 13) {
		OK(ta.ta_managed_prefetch(list, sizes, 2, &host, 1, stream));
		OK(ta.ta_managed_discard(list, sizes, 2, stream));
		OK(ta.ta_managed_discard_prefetch(list, sizes, 2, &host, 1, stream));
	}
	IS(one((char *)&device, 4, device0, NULL), NO_CONTEXT);
	OK(ta.ta_managed_free(p));
	OK(cu.cuCtxGetCurrent(&now));
	CHECK(now == NULL, "a context has been left behind");
	OK(cu.cuCtxCreate_v2(&other, 0, 1));
	OK(ta.ta_managed_free(q));
	OK(cu.cuCtxGetCurrent(&now));
	CHECK(now == other, "another context is current");
}

// Counted by the device's limits: the cap is 64 MiB, where the library serves at all.
static void limits(void)
{
	begin();
	char *p = get_some(50 * MIB);
	CHECK(ta.ta_managed_malloc(30 * MIB, 0) == NULL && errno == ENOMEM, "over the limit");
	OK(ta.ta_managed_free(p));
	p = get_some(60 * MIB);
	OK(ta.ta_managed_free(p));
	p = get_some(60 * MIB);
	OK(cu.cuMemFree_v2((CUdeviceptr)p)); // by any of the ways to free it
	p = get_some(60 * MIB);
	OK(ta.ta_managed_free(p));
	IS(fake.fake_used(0), 0);
}

// The memory is another's, and the library is switched off: the driver is told all the same.
static void off(void)
{
	CUdeviceptr p;
	begin();
	OK(cu.cuMemAllocManaged(&p, 2 * MIB, 1));
	CHECK(ta.ta_managed_malloc(1000, 0) == NULL && errno == ENODEV, "errno %d", errno);
	OK(ta.ta_managed_advise((void *)p, MIB, TA_SET_READ_MOSTLY, nowhere));
	IS(get((void *)p, MIB, READ_MOSTLY), 1);
	OK(one((void *)p, MIB, device1, stream));
	IS(get((void *)p, MIB, PREFETCHED), 1);
	OK(ta.ta_managed_free((void *)p));
	IS(fake.fake_used(0), 0);
}

// What the driver says is what the caller gets.
static void failures(void)
{
	begin();
	char *p = get_some(2 * MIB);
	void *list[] = {p, p + MIB};
	size_t sizes[] = {MIB, MIB};
	int out;
	fake.fake_fail("cuMemAdvise_v2", 1, 999);
	IS(ta.ta_managed_advise(p, MIB, TA_SET_READ_MOSTLY, nowhere), 999);
	fake.fake_fail("cuMemPrefetchAsync_v2", 1, 999);
	IS(one(p, MIB, host, stream), 999);
	fake.fake_fail("cuMemPrefetchBatchAsync", 1, 999);
	IS(ta.ta_managed_prefetch(list, sizes, 2, &host, 1, stream), 999);
	fake.fake_fail("cuMemDiscardBatchAsync", 1, 999);
	IS(ta.ta_managed_discard(list, sizes, 2, stream), 999);
	fake.fake_fail("cuMemDiscardAndPrefetchBatchAsync", 1, 999);
	IS(ta.ta_managed_discard_prefetch(list, sizes, 2, &host, 1, stream), 999);
	fake.fake_fail("cuMemRangeGetAttribute", 1, 999);
	IS(ta.ta_managed_get(p, MIB, READ_MOSTLY, &out, 1), 999);
	fake.fake_fail("cuMemFree_v2", 1, 999);
	IS(ta.ta_managed_free(p), 999);
	OK(ta.ta_managed_free(p));
}

static const struct test tests[] = {{"absent", absent}, {"arguments", arguments},
	{"advice", advice}, {"singles", singles}, {"batches", batches}, {"contextless", contextless},
	{"limits", limits}, {"off", off}, {"failures", failures}};

int main(int argc, char **argv)
{
	CHECK(argc == 3, "which case, and which driver");
	version = atoi(argv[2]);
	find();
	RUN(tests);
}
