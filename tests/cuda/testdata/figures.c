// The figures of a device, and frees of what is no block: how a program learns of them.
#include "common.h"
#include "tieralloc.h"

#define FUNCTIONS(F) \
	F(ta_cuda_malloc) \
	F(ta_cuda_free) \
	F(ta_cuda_record_stream) F(ta_cuda_get_stats) F(ta_cuda_configure) F(ta_cuda_coalesce)
static struct {
#define MEMBER(name) __typeof__(name) *name;
	FUNCTIONS(MEMBER)
} ta;

static void find(void)
{
#define TAKE(name) CHECK((ta.name = (__typeof__(name) *)dlsym(RTLD_DEFAULT, #name)) != NULL, #name);
	FUNCTIONS(TAKE)
}

static ta_cuda_stats figures(int device)
{
	ta_cuda_stats s = {.size = sizeof s};
	CHECK(ta.ta_cuda_get_stats(device, &s) == 0, "errno %d", errno);
	return s;
}

// What errno is after a free that began with another one.
static int after_free(void *p)
{
	errno = EDOM;
	ta.ta_cuda_free(p, 0, 0, NULL);
	return errno;
}

static int after_record(void *p)
{
	errno = EDOM;
	ta.ta_cuda_record_stream(p, (void *)CU_STREAM_PER_THREAD);
	return errno;
}

// Each line of the log that is expected is one wrong free.
static void frees(void)
{
	CUdeviceptr managed;
	int host;
	load();
	char *a = ta.ta_cuda_malloc(5000, 0, NULL), *b = ta.ta_cuda_malloc(5000, 0, NULL),
		 *large = ta.ta_cuda_malloc(30 * MIB, 0, NULL);
	OK(cu.cuMemAllocManaged(&managed, MIB, 1));
	CHECK(after_free(a + 512) == EINVAL && after_free(a + 1) == EINVAL, "inside");
	CHECK(after_free(large + 4 * MIB) == EINVAL, "inside a large one");
	CHECK(after_record(a) == EDOM && after_record(a + 512) == EINVAL && after_record(&host) == EDOM,
		"a stream");
	CHECK(after_free(&host) == EINVAL && after_free((void *)4096) == EINVAL, "foreign");
	CHECK(after_free(large) == EDOM && after_free(a) == EDOM && after_free(b) == EDOM &&
			after_free(NULL) == EDOM,
		"blocks");
	CHECK(after_free(large) == EINVAL && after_free(b) == EINVAL, "twice");
	CHECK(after_record(b) == EINVAL && after_record(NULL) == EDOM, "a stream of what was freed");
	CHECK(ta.ta_cuda_coalesce(0) == 0, "errno %d", errno);
	CHECK(after_free(b) == EINVAL, "merged");
	CHECK(after_free((void *)managed) == EDOM, "what the driver has");
	ta_cuda_stats s = figures(0);
	printf("live %ju invalid %ju\n", (uintmax_t)s.bytes_live, (uintmax_t)s.frees_invalid);
}

static void stats(void)
{
	ta_cuda_stats s = {.size = sizeof s}, none = {.size = sizeof s};
	s.alloc_calls = 77;
	CHECK(ta.ta_cuda_get_stats(0, &s) == 0 && s.alloc_calls == 0 && s.bytes_device == 0,
		"before there is a driver");
	CHECK(s.stream_local == 100 && s.global_limit >> 63 == 1 && s.segment_size == 20 * MIB &&
			s.recording == 0,
		"settings");
	CHECK(ta.ta_cuda_configure(0, "global", 7) == 0 && ta.ta_cuda_configure(0, "trace", 1) == 0,
		"errno %d", errno);
	CHECK((s = figures(0)).global_limit == 7 && s.recording == 1 &&
			figures(1).global_limit >> 63 == 1,
		"of one device");
	load();
	char *a = ta.ta_cuda_malloc(3 * MIB, 0, NULL), *b = ta.ta_cuda_malloc(5 * MIB, 0, NULL);
	ta.ta_cuda_free(a, 0, 0, NULL);
	s = figures(0);
	CHECK(s.alloc_calls == 2 && s.free_calls == 1 && s.blocks_live == 1 && s.bytes_live == 5 * MIB,
		"calls");
	CHECK(s.misses == 1 && s.hits_split == 1 && s.bytes_peak == 8 * MIB &&
			s.bytes_reserved == 20 * MIB,
		"hits");
	CHECK(s.bytes_cached_local + s.bytes_cached_global == 15 * MIB && s.largest_free == 12 * MIB,
		"free");
	CHECK(s.bytes_device != 0 && s.bytes_current == 20 * MIB && s.capacity_hard == 0 &&
			s.segments == 1,
		"device");
	CHECK(figures(1).alloc_calls == 0, "another device");
	ta_cuda_stats part = {.size = offsetof(ta_cuda_stats, free_calls), .free_calls = 99};
	CHECK(ta.ta_cuda_get_stats(0, &part) == 0 && part.alloc_calls == 2 && part.free_calls == 99,
		"a program that is older");
	none.size = 1;
	CHECK(ta.ta_cuda_get_stats(0, &none) == -1 && errno == EINVAL, "errno %d", errno);
	CHECK(ta.ta_cuda_get_stats(0, NULL) == -1 && errno == EINVAL, "errno %d", errno);
	CHECK(ta.ta_cuda_get_stats(-1, &s) == -1 && errno == ENODEV, "errno %d", errno);
	CHECK(ta.ta_cuda_get_stats(16, &s) == -1 && errno == ENODEV, "errno %d", errno);
	ta.ta_cuda_free(b, 0, 0, NULL);
}

static void off(void)
{
	ta_cuda_stats s = {.size = sizeof s};
	load();
	CHECK(ta.ta_cuda_get_stats(0, &s) == -1 && errno == ENODEV, "errno %d", errno);
	CHECK(after_free((void *)4096) == ENODEV && after_free(NULL) == EDOM, "nobody frees it");
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {{"frees", frees}, {"stats", stats}, {"off", off}};
	find();
	RUN(tests);
}
