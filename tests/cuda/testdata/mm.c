// Memory managers, from C, on a device of 1024 MiB.
#include "mm_common.h"

// What each kind of memory is, that it holds what is written, and that its bytes are counted.
static void kinds(void)
{
	ta_mm *m = start(0, "kinds");
	size_t room;
	CHECK(mm(register)(m, 1, "one", "default", -1, NULL, NULL) == 0, "register");
	CHECK(info(m, 1).cap == 1024 * MIB, "cap %zu", (size_t)info(m, 1).cap);
	for (int kind = TA_MM_DEVICE; kind <= TA_MM_MANAGED; kind++) {
		char *p = mm(alloc)(m, 1, 3 * MIB, kind, NULL);
		CHECK(p != NULL, "kind %d: %s", kind, strerror(errno));
		memset(p, kind, 3 * MIB);
		CHECK(info(m, 1).bytes_live == 3 * MIB, "live %zu", (size_t)info(m, 1).bytes_live);
		CHECK(mm(free)(m, p + 1, NULL) == -1 && errno == EINVAL, "an inner address is freed");
		CHECK(mm(free)(m, p, NULL) == 0, "free: %s", strerror(errno));
		CHECK(mm(free)(m, p, NULL) == -1 && errno == EINVAL, "freed twice");
		CHECK(info(m, 1).bytes_live == 0, "live %zu", (size_t)info(m, 1).bytes_live);
	}
	CHECK(mm(free)(m, NULL, NULL) == 0, "free of NULL");
	CHECK(mm(alloc)(m, 1, MIB, 4, NULL) == NULL && errno == EINVAL, "kind 4");
	CHECK(mm(alloc)(m, 1, 0, 0, NULL) == NULL && errno == EINVAL, "0 bytes");
	CHECK(mm(alloc)(m, 2, MIB, 0, NULL) == NULL && errno == ENOENT, "no such instance");
	CHECK(mm(alloc)(m, 1, SIZE_MAX / 2, 0, NULL) == NULL && errno == ENOMEM, "more than there is");
	CHECK(mm(available)(m, "default", TA_MM_ASK, &room) == 0 && room <= 1024 * MIB &&
			room > 900 * MIB,
		"free %zu", room);
	CHECK(mm(create)(7, 0, NULL) == NULL && errno == ENODEV, "device 7");
	CHECK(
		mm(create)(0, 0, "a name that is much too long for the reports to have it whole") == NULL &&
			errno == EINVAL,
		"name");
	CHECK(mm(unregister)(m, 1) == 0 && mm(destroy)(m) == 0, "the end: %s", strerror(errno));
	CHECK(mm(set_mode)(m, 0) == -1 && errno == EINVAL, "after the end");
}

// Where the host has no memory nobody gives way.
static void host(void)
{
	ta_mm *m = start(0, NULL);
	for (uint64_t i = 1; i <= 2; i++)
		mm(register)(m, i, NULL, NULL, -1, NULL, NULL);
	CHECK(mm(alloc)(m, 1, MIB, TA_MM_DEVICE, NULL) != NULL, "device");
	for (int kind = TA_MM_PINNED; kind <= TA_MM_MAPPED; kind++) {
		fake.fake_fail("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
		CHECK(mm(alloc)(m, 2, MIB, kind, NULL) == NULL && errno == ENOMEM, "kind %d", kind);
	}
	CHECK(info(m, 1).evictions == 0 && info(m, 1).bytes_live == MIB && info(m, 2).refused == 2 &&
			info(m, 2).bytes_live == 0,
		"gave way");
}

// Pinned memory is freed when the stream has done what it was given, and not while it works.
static void pinned(void)
{
	ta_mm *m = start(0, NULL);
	CUstream s;
	OK(cu.cuStreamCreate(&s, 1));
	mm(register)(m, 1, NULL, NULL, 0.5, NULL, NULL);
	char *p = mm(alloc)(m, 1, MIB, TA_MM_PINNED, s);
	OK(fake.fake_launch((CUdeviceptr)p, MIB, 7, s));
	CHECK(fake.fake_busy((CUdeviceptr)p, MIB, NULL, 0), "the work is not done yet");
	CHECK(mm(free)(m, p, s) == 0, "free");
}

static int asked;
static void *has[8];

static void give_way(uint64_t instance, void *arg)
{
	asked = asked * 10 + (int)instance;
	if (has[instance] != NULL)
		mm(free)(arg, has[instance], NULL);
	has[instance] = NULL;
}

// Over the budget the idle instance of the group that was not used for longest gives way.
static void evict(void)
{
	ta_mm *m = start(100 * MIB, "evict");
	CUstream s;
	OK(cu.cuStreamCreate(&s, 1));
	for (uint64_t i = 1; i <= 4; i++)
		CHECK(mm(register)(m, i, "x", i == 4 ? "other" : "default", 0.2, give_way, m) == 0,
			"register");
	CHECK(mm(set_mode)(m, TA_MM_ACTIVE) == 0 && mm(set_mode)(m, 2) == -1, "mode");
	for (uint64_t i = 1; i <= 4; i++)
		CHECK((has[i] = mm(alloc)(m, i, 20 * MIB, TA_MM_DEVICE, i == 2 ? s : NULL)) != NULL,
			"block %d", (int)i);
	OK(fake.fake_launch((CUdeviceptr)has[2], 20 * MIB, 1, s)); // 2 is not idle
	mm(use)(m, 1, NULL);
	void *p = mm(alloc)(m, 3, 10 * MIB, TA_MM_DEVICE, NULL);
	CHECK(p != NULL && asked == 1 && has[4] != NULL, "asked %d", asked);
	CHECK(info(m, 1).evictions == 1 && info(m, 1).bytes_live == 0, "of 1");
	void *q = mm(alloc)(m, 3, 20 * MIB, TA_MM_DEVICE, NULL);
	CHECK(q == NULL && errno == ENOMEM && asked == 1 && info(m, 3).refused == 1, "asked %d", asked);
	fake.fake_complete(s);
	q = mm(alloc)(m, 3, 20 * MIB, TA_MM_DEVICE, NULL);
	CHECK(q != NULL && asked == 12 && has[2] == NULL, "asked %d", asked);
	asked = 0;
	CHECK(mm(alloc)(m, 3, 50 * MIB, TA_MM_DEVICE, NULL) == NULL && asked == 0,
		"itself or others were asked: %d", asked);
	// The block of one that has no function of its own is freed for it.
	CHECK(mm(register)(m, 5, "x", "default", 0.1, NULL, NULL) == 0, "register");
	CHECK(mm(alloc)(m, 5, 5 * MIB, TA_MM_DEVICE, s) != NULL, "of 5");
	OK(cu.cuStreamDestroy_v2(s)); // it may not be asked any more
	CHECK(mm(alloc)(m, 1, 20 * MIB, TA_MM_DEVICE, NULL) != NULL, "of 1: %s", strerror(errno));
	CHECK(info(m, 5).bytes_live == 0 && info(m, 5).evictions == 1, "of 5");
}

// The device is full: instances of all groups give way, in passive mode too.
static void full(void)
{
	ta_mm *m = start(0, "full");
	mm(register)(m, 1, "x", "a", 0.2, give_way, m);
	mm(register)(m, 2, "x", "b", 0.2, NULL, NULL);
	CHECK((has[1] = mm(alloc)(m, 1, 600 * MIB, TA_MM_DEVICE, NULL)) != NULL, "of 1");
	void *p = mm(alloc)(m, 2, 600 * MIB, TA_MM_DEVICE, NULL);
	CHECK(p != NULL && asked == 1, "asked %d: %s", asked, strerror(errno));
	CHECK(mm(alloc)(m, 1, 600 * MIB, TA_MM_DEVICE, NULL) != NULL, "the other way round: %s",
		strerror(errno));
	CHECK(info(m, 2).bytes_live == 0, "live %zu", (size_t)info(m, 2).bytes_live);
}

static void chunk(void)
{
	ta_mm *m = start(100 * MIB, "chunk");
	size_t shape[3] = {16, 1 << 20, 100}, weights[1] = {1 << 20};
	ta_mm_request r[2] = {{4, shape, 3, 2, 0, TA_MM_DEVICE}, {4, weights, 1, -1, 0, TA_MM_DEVICE}};
	ta_mm_chunking c = {.size = sizeof c};
	mm(register)(m, 1, "x", "g", -1, NULL, NULL);
	mm(set_mode)(m, TA_MM_ACTIVE);
	CHECK(mm(chunk)(m, "g", 1000 * MIB, r, 2, 100, &c) == 0, "%s", strerror(errno));
	CHECK(c.available == 100 * MIB && c.chunk_length == 1 && c.chunks == 100 && !c.far_too_large,
		"length %zu", c.chunk_length);
	CHECK(mm(chunk)(m, "g", 50 * MIB, r, 2, 100, &c) == -1 && errno == ENOSPC && c.far_too_large,
		"%s", strerror(errno));
	CHECK(mm(chunk)(m, "g", 3 * MIB, r, 2, 100, &c) == -1 && errno == E2BIG, "%s", strerror(errno));
	CHECK(mm(chunk)(m, "g", 3 * MIB, r + 1, 1, 100, &c) == -1 && errno == ENOTSUP, "%s",
		strerror(errno));
	CHECK(mm(chunk)(m, "g", 3 * MIB, NULL, 1, 100, &c) == -1 && errno == EINVAL, "%s",
		strerror(errno));
	c.size = 3;
	CHECK(
		mm(chunk)(m, "g", 3 * MIB, r, 1, 100, &c) == -1 && errno == EINVAL, "%s", strerror(errno));
}

static struct {
	size_t n, chunks, length;
	void *blocks[3];
} told[4];
static int tellings;

static void ready(uint64_t id, const ta_mm_chunking *c, void *const *blocks, size_t n, void *arg)
{
	CHECK(arg == &told[id] && n <= 3, "%zu blocks", n);
	told[id].n = n;
	told[id].chunks = c->chunks;
	told[id].length = c->chunk_length;
	for (size_t i = 0; i < n; i++)
		told[id].blocks[i] = blocks[i];
	tellings++;
}

// All that a group wants is had with one chunking, or nothing.
static void queue(void)
{
	ta_mm *m = start(0, "queue");
	size_t cut[3] = {16, 1 << 10, 1000}, fixed[2] = {1 << 10, 1 << 10}, none[1] = {0}, deep[33];
	ta_mm_request a[2] = {{4, cut, 3, 2, 0, TA_MM_DEVICE}, {4, fixed, 2, -1, 0, TA_MM_PINNED}};
	ta_mm_request b[2] = {{8, cut, 3, 2, 0, TA_MM_MANAGED}, {8, none, 1, -1, 0, TA_MM_DEVICE}};
	ta_mm_request bad = {4, deep, 33, -1, 0, TA_MM_DEVICE};
	ta_mm_chunking c = {.size = sizeof c};
	for (int i = 0; i < 33; i++)
		deep[i] = 1;
	for (uint64_t i = 1; i <= 3; i++) {
		mm(register)(m, i, "x", "g", -1, NULL, NULL);
		CHECK(mm(on_ready)(m, i, ready, &told[i]) == 0, "ready");
	}
	CHECK(
		mm(allocate_queue)(m, 9, TA_MM_ASK, NULL, &c) == -1 && errno == ENOENT, "no such instance");
	CHECK(mm(allocate_queue)(m, 1, TA_MM_ASK, NULL, &c) == 0 && c.chunks == 1 && tellings == 3 &&
			told[1].n == 0,
		"nothing queued");
	CHECK(mm(queue)(m, 1, a, 2, 0) == -1 && errno == EINVAL, "no runs");
	CHECK(mm(queue)(m, 1, a, 65, 5) == -1 && errno == EINVAL, "too many arrays");
	CHECK(mm(queue)(m, 1, &bad, 1, 1) == -1 && errno == EINVAL, "too many dimensions");
	CHECK(mm(queue)(m, 7, a, 2, 1000) == -1 && errno == ENOENT, "no such instance");
	// the second replaces the first
	CHECK(mm(queue)(m, 1, b, 2, 7) == 0 && mm(queue)(m, 1, a, 2, 1000) == 0, "queue");
	CHECK(mm(queue)(m, 2, b, 2, 1000) == 0, "queue");
	// 64,000 KiB + 128,000 KiB that can be cut, and 4,096 KiB: of 100,096 KiB 500 runs.
	CHECK(mm(allocate_queue)(m, 3, 100096 << 10, NULL, &c) == 0, "%s", strerror(errno));
	CHECK(c.chunk_length == 500 && c.chunks == 2 && c.available == 100096 << 10,
		"%zu runs, %zu chunks", c.chunk_length, c.chunks);
	for (int i = 1; i <= 3; i++)
		CHECK(told[i].chunks == 2 && told[i].length == 500 && told[i].n == (i < 3 ? 2 : 0),
			"told %d", i);
	CHECK(tellings == 6 && told[2].blocks[1] == NULL && told[1].blocks[0] != NULL, "%d tellings",
		tellings);
	CHECK(info(m, 1).bytes_live == (32000 + 4096) << 10 && info(m, 2).bytes_live == 64000 << 10,
		"live");
	memset(told[1].blocks[1], 1, 4 * MIB);
	CHECK(mm(allocate_queue)(m, 1, TA_MM_ASK, NULL, NULL) == 0 && told[1].n == 0 && tellings == 9,
		"the queue is over");
	CHECK(mm(free)(m, told[2].blocks[0], NULL) == 0 && info(m, 2).bytes_live == 0, "free");
	// The second array fails, and neither can be cut: the first is given back, and the queue stays.
	a[0].unchunkable = b[0].unchunkable = 1;
	CHECK(mm(queue)(m, 2, b, 2, 1000) == 0 && mm(queue)(m, 3, a, 1, 1000) == 0, "queue");
	for (int i = 0; i < 3; i++) {
		int full = i < 2;
		CUdeviceptr hog = 0;
		if (full)
			OK(cu.cuMemAlloc_v2(&hog, 900 * MIB));
		int answer = mm(allocate_queue)(m, 2, 1000 * MIB, NULL, &c);
		CHECK(
			answer == (full ? -1 : 0) && (!full || errno == ENOMEM), "%d: %s", i, strerror(errno));
		CHECK(tellings == (full ? 9 : 12) && (info(m, 2).bytes_live == 0) == full,
			"%d: %d tellings", i, tellings);
		if (full)
			OK(cu.cuMemFree_v2(hog));
	}
	CHECK(told[2].n == 2 && told[3].n == 1 && told[3].blocks[0] != NULL, "the queue was kept");
	a[0].unchunkable = 0;
	// There are as many runs as the longest queue has, and no chunk is longer than its axis.
	size_t brief[1] = {40};
	ta_mm_request few = {1 << 20, brief, 1, 0, 0, TA_MM_DEVICE};
	for (uint64_t i = 1; i <= 3; i++)
		CHECK(mm(unregister)(m, i) == (i == 1 ? 0 : -1), "unregister");
	mm(register)(m, 4, "x", "h", -1, NULL, NULL);
	mm(register)(m, 5, "x", "h", -1, NULL, NULL);
	CHECK(mm(queue)(m, 4, &few, 1, 40) == 0 && mm(queue)(m, 5, a, 1, 1000) == 0, "queue");
	CHECK(mm(allocate_queue)(m, 4, 200 * MIB, NULL, &c) == 0 && c.chunks == 1 &&
			c.chunk_length == 1000,
		"%zu chunks", c.chunks);
	CHECK(info(m, 4).bytes_live == 40 * MIB && info(m, 5).bytes_live == 64000 << 10, "all at once");
	CHECK(mm(queue)(m, 4, &few, 1, 40) == 0 && mm(queue)(m, 5, a, 1, 1000) == 0, "queue");
	CHECK(
		mm(allocate_queue)(m, 4, 100 * MIB, NULL, &c) == 0 && c.chunks == 2 && c.chunk_length > 500,
		"%zu chunks", c.chunks);
	CHECK(info(m, 4).bytes_live == 80 * MIB, "a chunk is longer than its axis: %zu",
		(size_t)info(m, 4).bytes_live);
}

// Threads that allocate and free beside each other, and a child that does neither.
enum { THREADS = 6, ROUNDS = 3000 };
static ta_mm *shared;

static void *work(void *arg)
{
	uint64_t id = (uint64_t)(uintptr_t)arg;
	void *p[8] = {0};
	unsigned seed = (unsigned)id;
	for (int i = 0; i < ROUNDS; i++) {
		int k = rand_r(&seed) % 8;
		if (p[k] != NULL)
			CHECK(mm(free)(shared, p[k], NULL) == 0, "free: %s", strerror(errno));
		p[k] = mm(alloc)(shared, id, 1 + rand_r(&seed) % (2 * MIB), k % 4, NULL);
		if (i == ROUNDS / 2 && id == 1) {
			pid_t child = fork();
			if (child == 0) {
				ta_mm_info in = {.size = sizeof in};
				_exit(mm(get)(shared, 1, &in) == 0 && in.bytes_live > 0 &&
							mm(alloc)(shared, 1, 10, 0, NULL) == NULL ?
						0 :
						1);
			}
			int status;
			waitpid(child, &status, 0);
			CHECK(status == 0, "the child: %#x", status);
		}
	}
	for (int k = 0; k < 8; k++)
		if (p[k] != NULL)
			CHECK(mm(free)(shared, p[k], NULL) == 0, "free: %s", strerror(errno));
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	shared = start(64 * MIB, "threads");
	mm(set_mode)(shared, TA_MM_ACTIVE);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(mm(register)(shared, i + 1, "t", i % 2 ? "odd" : "even", -1, give_way, shared) == 0,
			"register");
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (uint64_t i = 1; i <= THREADS; i++)
		CHECK(info(shared, i).bytes_live == 0, "live %zu", (size_t)info(shared, i).bytes_live);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"kinds", kinds}, {"pinned", pinned}, {"host", host}, {"evict", evict},
		{"full", full}, {"chunk", chunk}, {"queue", queue}, {"threads", threads}};
	for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run();
			CHECK(fake.fake_illegals() == 0, "%lu illegal calls", fake.fake_illegals());
			puts("ok");
			return 0;
		}
	return 2;
}
