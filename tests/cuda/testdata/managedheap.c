// What the memory of an unmodified program is with TA_CUDA_MANAGED=1. The first argument is
// the case.
#include "common.h"
#include "tieralloc.h"

enum { IS_MANAGED = 8, PREFERRED = 2, ACCESSED_BY = 3, NONE = -2 };
static CUresult (*range_get)(void *, size_t, int, CUdeviceptr, size_t);

// Prints what a block is, from its first byte to its last.
static void tell(const char *what, CUdeviceptr p, size_t n)
{
	unsigned managed = 0;
	int at = NONE, by[2] = {NONE, NONE};
	OK(cu.cuPointerGetAttribute(&managed, IS_MANAGED, p));
	if (managed) {
		OK(range_get(&at, sizeof at, PREFERRED, p, n));
		OK(range_get(by, sizeof by, ACCESSED_BY, p, n));
	}
	printf("%s %zu: %s, prefers %s, accessed by %d %d\n", what, n, managed ? "managed" : "plain",
		at == 0        ? "the device" :
			at == -1   ? "the host" :
			at == NONE ? "nothing" :
						 "another",
		by[0], by[1]);
}

static void begin(void)
{
	load();
	range_get = (__typeof__(range_get))dlsym(
		dlopen("libcuda.so.1", RTLD_LAZY), "cuMemRangeGetAttribute");
	CHECK(range_get != NULL);
}

static CUdeviceptr get(size_t n)
{
	CUdeviceptr p;
	OK(cu.cuMemAlloc_v2(&p, n));
	return p;
}

// Blocks as each hint has them, from the driver's calls and from ours. They are written to.
static void hints(void)
{
	static const char *const names[] = {"hot", "warm", "cold", "pin_fast", "prefer_fast"};
	static const size_t sizes[] = {1000, 3 * MIB};
	CUstream s;
	__typeof__(ta_set_hint) *set = (__typeof__(set))ours("ta_set_hint");
	__typeof__(ta_cuda_malloc) *ta_malloc = (__typeof__(ta_malloc))ours("ta_cuda_malloc");
	__typeof__(ta_cuda_free) *ta_free = (__typeof__(ta_free))ours("ta_cuda_free");
	begin();
	OK(cu.cuStreamCreate(&s, 1));
	for (int i = 0; i < 2; i++)
		tell("none", get(sizes[i]), sizes[i]);
	for (int round = 0; round < 2; round++) // the second from what the first has freed
		for (int hint = 0; hint < 5; hint++) {
			CHECK(set((ta_hint)(TA_HOT + hint)) <= TA_PREFER_FAST);
			for (int i = 0; i < 2; i++) {
				CUdeviceptr p = get(sizes[i]), q = (CUdeviceptr)ta_malloc((ssize_t)sizes[i], 0, s);
				CHECK(q != 0);
				OK(fake.fake_launch(p, sizes[i], hint, s));
				OK(fake.fake_launch(q, sizes[i], hint, s));
				fake.fake_complete_all();
				CHECK(*(char *)p == hint && ((char *)q)[sizes[i] - 1] == hint);
				tell(names[hint], p, sizes[i]);
				tell(names[hint], q, sizes[i]);
				OK(cu.cuMemFree_v2(p));
				ta_free((void *)q, 0, 0, s);
			}
		}
}

// Two blocks, and how often the driver was asked for which memory.
static void asked(void)
{
	begin();
	tell("first", get(3 * MIB), 3 * MIB);
	tell("second", get(3 * MIB), 3 * MIB);
	printf("%lu managed, %lu plain\n", fake.fake_calls("cuMemAllocManaged"),
		fake.fake_calls("cuMemAlloc_v2"));
}

// A driver that knows of its managed memory only when it is asked for some.
static void refuses(void)
{
	begin();
	fake.fake_fail("cuMemAllocManaged", 1, CUDA_ERROR_NOT_SUPPORTED);
	tell("first", get(3 * MIB), 3 * MIB);
	tell("second", get(3 * MIB), 3 * MIB);
}

// Blocks of 10 MiB until there are no more.
static void fill(void)
{
	CUdeviceptr p;
	CUresult e;
	size_t free, total;
	begin();
	for (int n = 0; n < 8 && (e = cu.cuMemAlloc_v2(&p, 10 * MIB)) == 0; n++)
		tell("block", p, 10 * MIB);
	OK(cu.cuMemGetInfo_v2(&free, &total));
	printf("then %d, %zu of %zu MiB free\n", e, free / MIB, total / MIB);
}

// What a program may ask of a block is of the block, not of its segment; a handle for other
// processes there is none.
static void questions(void)
{
	CUipcMemHandle h;
	CUdeviceptr base, p[2];
	size_t n;
	int on = 1;
	begin();
	p[0] = get(1000);
	p[1] = get(1000);
	OK(cu.cuMemGetAddressRange_v2(&base, &n, p[1] + 999));
	CHECK(base == p[1] && n == 1000, "%zu", n);
	SHOW(cu.cuPointerSetAttribute(&on, 6, p[1]));
	SHOW(cu.cuIpcGetMemHandle(&h, p[1]));
	SHOW(cu.cuIpcGetMemHandle(&h, get(3 * MIB)));
	SHOW(cu.cuMemFree_v2(p[1]));
	SHOW(cu.cuMemFree_v2(p[1]));
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {{"hints", hints}, {"asked", asked}, {"refuses", refuses},
		{"fill", fill}, {"questions", questions}};
	RUN(tests);
}
