// Call sites that allocate device memory, for heap profiles.
#include "common.h"

#define SITE(name) \
	__attribute__((noinline)) static CUdeviceptr name##_site(size_t n) \
	{ \
		CUdeviceptr p = 0; \
		OK(name(&p, n)); \
		__asm__ volatile("" ::: "memory"); \
		return p; \
	}

static void *(*own_malloc)(ssize_t, int, void *);
static void (*own_free)(void *, ssize_t, int, void *);

static CUresult plain(CUdeviceptr *p, size_t n) { return cu.cuMemAlloc_v2(p, n); }
static CUresult small(CUdeviceptr *p, size_t n) { return cu.cuMemAlloc_v2(p, n); }
static CUresult second(CUdeviceptr *p, size_t n) { return cu.cuMemAlloc_v2(p, n); }
static CUresult again(CUdeviceptr *p, size_t n) { return cu.cuMemAlloc_v2(p, n); }
static CUresult shared(CUdeviceptr *p, size_t n) { return cu.cuMemAlloc_v2(p, n); }
static CUresult ended(CUdeviceptr *p, size_t n) { return cu.cuMemAlloc_v2(p, n); }
static CUresult async(CUdeviceptr *p, size_t n) { return cu.cuMemAllocAsync(p, n, NULL); }
static CUresult managed(CUdeviceptr *p, size_t n)
{
	return cu.cuMemAllocManaged(p, n, CU_MEM_ATTACH_GLOBAL);
}
static CUresult refused(CUdeviceptr *p, size_t n) { return managed(p, n); }
static CUresult own(CUdeviceptr *p, size_t n)
{
	*p = (CUdeviceptr)own_malloc((ssize_t)n, 0, NULL);
	return *p == 0;
}
// clang-format off
SITE(plain)
SITE(small)
SITE(second)
SITE(again)
SITE(shared)
SITE(ended)
SITE(async)
SITE(managed)
SITE(refused)
SITE(own)
// clang-format on

__attribute__((noinline)) static void *host_site(size_t n)
{
	void *volatile p = malloc(n);
	return p;
}

static void load_own(void)
{
	load();
	*(void **)&own_malloc = ours("ta_cuda_malloc");
	*(void **)&own_free = ours("ta_cuda_free");
	CHECK(own_malloc != NULL && own_free != NULL, "no library");
}

static CUdeviceptr list[64];

static void *free_list(void *context)
{
	OK(cu.cuCtxSetCurrent(context));
	for (int i = 0; i < 5; i++)
		OK(cu.cuMemFree_v2(list[i]));
	return NULL;
}

static void sites(void)
{
	pthread_t t;
	CUcontext c, other;
	load_own();
	OK(cu.cuCtxGetCurrent(&c));
	for (int i = 0; i < 3; i++)
		list[i] = plain_site(4 * MIB);
	OK(cu.cuMemFree_v2(list[1]));
	for (int i = 0; i < 5; i++)
		list[i] = small_site(1000);
	OK(pthread_create(&t, NULL, free_list, c)); // freed by another thread
	OK(pthread_join(t, NULL));
	for (int i = 0; i < 4; i++)
		list[i] = async_site(65536);
	OK(cu.cuMemFreeAsync(list[0], NULL));
	OK(cu.cuMemFreeAsync(list[3], NULL));
	list[0] = managed_site(MIB);
	managed_site(MIB);
	OK(cu.cuMemFree_v2(list[0]));
	for (int i = 0; i < 7; i++)
		list[i] = own_site(2000);
	for (int i = 0; i < 3; i++)
		own_free((void *)list[i], 0, 0, NULL);
	for (int i = 0; i < 100; i++) // mostly at one address
		OK(cu.cuMemFree_v2(again_site(3 * MIB)));
	again_site(3 * MIB);
	host_site(1 << 20);
	OK(cu.cuDevicePrimaryCtxRetain(&other, 1));
	OK(cu.cuCtxSetCurrent(other));
	second_site(8 * MIB);
	second_site(8 * MIB);
	OK(cu.cuCtxSetCurrent(c));
	list[0] = refused_site(MIB);
	fake.fake_fail("cuMemFree_v2", 1, CUDA_ERROR_INVALID_VALUE);
	CHECK(cu.cuMemFree_v2(list[0]) == CUDA_ERROR_INVALID_VALUE, "the driver frees");
	CHECK(cu.cuMemFree_v2(list[1] + 8) != 0, "the inside of a block is free");
	puts("done");
}

// Threads allocate, and free each other's blocks.
enum { THREADS = 4, ROUNDS = 500, SLOTS = 32 };
static CUdeviceptr slots[SLOTS];
static CUcontext common;

static void *exchange(void *seed)
{
	unsigned at = (unsigned)(uintptr_t)seed;
	OK(cu.cuCtxSetCurrent(common));
	for (int i = 0; i < ROUNDS; i++) {
		at = at * 1103515245u + 12345u;
		CUdeviceptr p = shared_site(4096);
		p = __atomic_exchange_n(&slots[at / 65536 % SLOTS], p, __ATOMIC_ACQ_REL);
		if (p != 0)
			OK(cu.cuMemFree_v2(p));
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	int kept = 0;
	load();
	OK(cu.cuCtxGetCurrent(&common));
	for (int i = 0; i < THREADS; i++)
		OK(pthread_create(&t[i], NULL, exchange, (void *)(uintptr_t)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < SLOTS; i++)
		kept += slots[i] != 0;
	printf("%d of %d\n", kept, THREADS * ROUNDS);
}

// Two contexts end, with all their blocks; that of the first device does not.
static void ends(void)
{
	CUcontext first = load(), c;
	plain_site(2 * MIB);
	OK(cu.cuCtxCreate_v2(&c, 0, 0));
	ended_site(4 * MIB);
	ended_site(1000);
	OK(cu.cuCtxDestroy_v2(c));
	OK(cu.cuDevicePrimaryCtxRetain(&c, 1));
	OK(cu.cuCtxSetCurrent(c));
	ended_site(6 * MIB);
	OK(cu.cuDevicePrimaryCtxReset_v2(1));
	OK(cu.cuCtxSetCurrent(first));
	OK(cu.cuCtxCreate_v2(&c, 0, 0)); // in the place of one that ended
	again_site(4 * MIB);
	puts("done");
}

// Contexts of two threads begin and end, each time with blocks in use.
static void *late(void *unused)
{
	CUcontext c;
	for (int i = 0; i < 300; i++) {
		OK(cu.cuCtxCreate_v2(&c, 0, 0));
		for (int k = 0; k < 3; k++)
			ended_site(4096);
		OK(cu.cuCtxDestroy_v2(c));
	}
	return unused;
}

static void late_ends(void)
{
	pthread_t t[2];
	load();
	for (int i = 0; i < 2; i++)
		OK(pthread_create(&t[i], NULL, late, NULL));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	puts("done");
}

static void forks(void)
{
	int status;
	load();
	plain_site(2 * MIB);
	host_site(1 << 20);
	pid_t child = fork();
	if (child == 0)
		exit(0);
	CHECK(waitpid(child, &status, 0) == child && status == 0, "%d", status);
	printf("%d\n", (int)child);
}

// The second block has no room on the device.
static void spills(void)
{
	load();
	plain_site(8 * MIB);
	second_site(8 * MIB);
	puts("done");
}

static const struct test tests[] = {{"sites", sites}, {"threads", threads}, {"ends", ends},
	{"late", late_ends}, {"forks", forks}, {"spills", spills}};

int main(int argc, char **argv) { RUN(tests); }
