// Call sites that allocate device memory, for heap profiles.
#include "common.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define SITE(name) \
	__attribute__((noinline)) static CUdeviceptr name##_site(size_t n) \
	{ \
		CUdeviceptr p = 0; \
		OK(name(&p, n)); \
		__asm__ volatile("" ::: "memory"); \
		return p; \
	}

static void *(*own_malloc)(ssize_t, int, void *);
static void *(*lent_malloc)(size_t, int);
static int (*lent_free)(void *);
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
static CUresult handled(CUdeviceptr *p, size_t n)
{
	*p = (CUdeviceptr)own_malloc((ssize_t)n, 0, NULL);
	return 0; // a handler may get none
}
static CUresult lent(CUdeviceptr *p, size_t n)
{
	*p = (CUdeviceptr)lent_malloc(n, 0);
	return *p == 0;
}
static CUresult pitched(CUdeviceptr *p, size_t n)
{
	size_t pitch;
	return cu.cuMemAllocPitch_v2(p, &pitch, n, 10, 4);
}
static CUresult array(CUdeviceptr *p, size_t n)
{
	return cu.cuArrayCreate_v2((CUarray *)p, &(CUDA_ARRAY_DESCRIPTOR){n, 16, 0x20, 1});
}
static CUresult levels(CUdeviceptr *p, size_t n)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {n, n, 0, 0x20, 1, 0};
	return cu.cuMipmappedArrayCreate((CUmipmappedArray *)p, &d, 2);
}
static CUresult created(CUdeviceptr *p, size_t n)
{
	CUmemAllocationProp on_device = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	return cu.cuMemCreate(p, n, &on_device, 0);
}
static CUresult pooled(CUdeviceptr *p, size_t n)
{
	return cu.cuMemAllocFromPoolAsync(p, n, fake.fake_pool(0), NULL);
}
// clang-format off
SITE(handled)
SITE(lent)
SITE(pitched)
SITE(array)
SITE(levels)
SITE(created)
SITE(pooled)
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
	*(void **)&lent_malloc = ours("ta_managed_malloc");
	*(void **)&lent_free = ours("ta_managed_free");
	CHECK(own_malloc && own_free && lent_malloc && lent_free, "no library");
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

// Two blocks of each kind that the driver allocates. One of them is freed.
static void kinds(void)
{
	load_own();
	OK(lent_free((void *)lent_site(3000)));
	lent_site(3000);
	OK(cu.cuMemFree_v2(pitched_site(1000)));
	pitched_site(1000);
	OK(cu.cuArrayDestroy((CUarray)array_site(256)));
	array_site(256);
	OK(cu.cuMipmappedArrayDestroy((CUmipmappedArray)levels_site(64)));
	levels_site(64);
	OK(cu.cuMemRelease(created_site(2 * MIB)));
	created_site(2 * MIB);
	OK(cu.cuMemFreeAsync(pooled_site(70000), NULL));
	pooled_site(70000);
	puts("done");
}

// While a stream captures a graph. What it allocates belongs to the graph.
static void captured(void)
{
	CUstream s;
	CUgraph g;
	CUdeviceptr p;
	load();
	OK(cu.cuStreamCreate(&s, 1));
	list[0] = plain_site(MIB);
	OK(cu.cuStreamBeginCapture_v2(s, 2));
	OK(cu.cuMemFree_v2(list[0])); // the device heap keeps it until the end of the capture
	again_site(MIB);
	cu.cuMemAllocAsync(&p, 1000, s);
	OK(cu.cuStreamEndCapture(s, &g));
	again_site(MIB);
	puts("done");
}

// Blocks are freed in a context that is not theirs, and without one.
static void elsewhere(void)
{
	CUcontext c, other;
	CUstream s;
	load();
	OK(cu.cuCtxGetCurrent(&c));
	for (int i = 0; i < 4; i++)
		list[i] = plain_site(MIB);
	OK(cu.cuDevicePrimaryCtxRetain(&other, 1));
	OK(cu.cuCtxSetCurrent(other));
	second_site(MIB);
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuMemFree_v2(list[0]));
	OK(cu.cuMemFreeAsync(list[1], s));
	OK(cu.cuCtxSetCurrent(NULL));
	OK(cu.cuMemFree_v2(list[2]));
	puts("done");
}

// A signal handler allocates and frees while its thread does.
static volatile int signals;

static void handler(int unused)
{
	(void)unused;
	own_free((void *)handled_site(4096), 0, 0, NULL);
	free(host_site(100));
	signals++;
}

static void handlers(void)
{
	struct itimerval often = {{0, 300}, {0, 300}}, never = {0};
	int n = 1;
	load_own();
	own_free((void *)own_site(2 * MIB), 0, 0, NULL); // the heap need not ask the driver again
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; n < 4000 || signals < 100; n++)
		own_free((void *)own_site(2 * MIB), 0, 0, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%d\n", n);
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

static void *allocating(void *context)
{
	OK(cu.cuCtxSetCurrent(context));
	for (;;)
		OK(cu.cuMemFree_v2(shared_site(4096)));
}

// Children of a process whose other thread is at work. Every second one skips the fork handlers.
// Each frees and allocates memory of the host, and writes a profile.
static void clones(void)
{
	int status;
	pthread_t t;
	CUcontext c = load();
	plain_site(2 * MIB);
	OK(pthread_create(&t, NULL, allocating, c));
	for (int i = 0; i < 40; i++) {
		void *p = host_site(1 << 20);
		pid_t child = i % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (child == 0) {
			free(p);
			host_site(1 << 20);
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0, "%#x", status);
		free(p);
	}
	puts("done");
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
	{"late", late_ends}, {"forks", forks}, {"spills", spills}, {"kinds", kinds},
	{"captured", captured}, {"elsewhere", elsewhere}, {"handlers", handlers}, {"clones", clones}};

int main(int argc, char **argv) { RUN(tests); }
