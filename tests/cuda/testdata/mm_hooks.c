// Memory managers, from C: functions of the program that call back, streams and contexts
// that end, programs that know less of a structure.
#include "mm_common.h"

static int asked;
static void *kept[8];

// An instance that is at work again when it is asked to give way, and has the same as before.
static void stays(uint64_t instance, void *m)
{
	asked++;
	mm(use)(m, instance, NULL);
	if (kept[instance] != NULL) {
		CHECK(mm(free)(m, kept[instance], NULL) == 0, "free");
		kept[instance] = mm(alloc)(m, instance, 40 * MIB, TA_MM_DEVICE, NULL);
		CHECK(kept[instance] != NULL, "what was just freed: %s", strerror(errno));
	}
}

// Each is asked once for an allocation, whatever it does then.
static void once(void)
{
	ta_mm *m = start(100 * MIB, "once");
	mm(set_mode)(m, TA_MM_ACTIVE);
	for (uint64_t i = 1; i <= 3; i++)
		CHECK(mm(register)(m, i, "x", "g", -1, stays, m) == 0, "register");
	CHECK((kept[1] = mm(alloc)(m, 1, 40 * MIB, TA_MM_DEVICE, NULL)) != NULL, "of 1");
	CHECK(mm(alloc)(m, 2, 40 * MIB, TA_MM_DEVICE, NULL) != NULL, "of 2");
	alarm(120);
	CHECK(mm(alloc)(m, 3, 30 * MIB, TA_MM_DEVICE, NULL) == NULL && errno == ENOMEM, "%s",
		strerror(errno));
	CHECK(asked == 2 && info(m, 1).evictions == 1 && info(m, 2).evictions == 1, "asked %d times",
		asked);
}

// Instances that want more when they are asked for what they have.
static void greedy(uint64_t instance, void *m)
{
	asked++;
	CHECK(mm(alloc)(m, instance, 80 * MIB, TA_MM_DEVICE, NULL) == NULL && errno == ENOMEM, "%s",
		strerror(errno));
}

// Who is asked to give way has nobody else give way.
static void nested(void)
{
	ta_mm *m = start(100 * MIB, "nested");
	mm(set_mode)(m, TA_MM_ACTIVE);
	for (uint64_t i = 1; i <= 3; i++) {
		CHECK(mm(register)(m, i, "x", "g", -1, greedy, m) == 0, "register");
		CHECK(mm(alloc)(m, i, 30 * MIB, TA_MM_DEVICE, NULL) != NULL, "of %d", (int)i);
	}
	CHECK(mm(alloc)(m, 3, 20 * MIB, TA_MM_DEVICE, NULL) == NULL && errno == ENOMEM, "%s",
		strerror(errno));
	CHECK(asked == 2, "asked %d times", asked);
}

// An allocation that would not fit if all gave way has nobody give way.
static void hopeless(void)
{
	ta_mm *m = start(100 * MIB, "hopeless");
	mm(set_mode)(m, TA_MM_ACTIVE);
	for (uint64_t i = 1; i <= 2; i++)
		CHECK(mm(register)(m, i, "x", "g", -1, NULL, NULL) == 0, "register");
	CHECK(mm(alloc)(m, 1, 30 * MIB, TA_MM_DEVICE, NULL) != NULL &&
			mm(alloc)(m, 2, 30 * MIB, TA_MM_DEVICE, NULL) != NULL,
		"of both");
	CHECK(mm(alloc)(m, 2, 71 * MIB, TA_MM_DEVICE, NULL) == NULL && errno == ENOMEM, "%s",
		strerror(errno));
	CHECK(info(m, 1).bytes_live == 30 * MIB && info(m, 1).evictions == 0 && info(m, 2).refused == 1,
		"gave way in vain");
	mm(set_mode)(m, TA_MM_PASSIVE);
	CHECK(mm(alloc)(m, 2, 1025 * MIB, TA_MM_DEVICE, NULL) == NULL && info(m, 1).evictions == 0,
		"more than the device has");
	mm(set_mode)(m, TA_MM_ACTIVE);
	CHECK(mm(alloc)(m, 2, 70 * MIB, TA_MM_DEVICE, NULL) != NULL && info(m, 1).bytes_live == 0, "%s",
		strerror(errno));
}

static struct {
	size_t n, times;
	void *block;
	ta_mm *m;
} told[5];
static ta_mm_request all;
static size_t lengths[1] = {100};

static void hear(uint64_t id, const ta_mm_chunking *c, void *const *blocks, size_t n, void *m)
{
	told[id].n = n;
	told[id].times++;
	told[id].block = n != 0 ? blocks[0] : NULL;
}

// What an instance has just got for its queue is not taken from it for the next one's.
static void kept_queue(void)
{
	ta_mm *m = start(0, "queue");
	all = (ta_mm_request){6 * MIB, lengths, 1, -1, 0, TA_MM_DEVICE}; // 600 MiB
	for (uint64_t i = 1; i <= 2; i++) {
		mm(register)(m, i, "x", "g", -1, NULL, NULL);
		mm(on_ready)(m, i, hear, m);
		CHECK(mm(queue)(m, i, &all, 1, 100) == 0, "queue");
	}
	CHECK(mm(allocate_queue)(m, 1, 2000 * MIB, NULL, NULL) == -1 && errno == ENOMEM,
		"both have 600 of 1024 MiB");
	CHECK(told[1].times == 0 && told[2].times == 0 && info(m, 1).bytes_live == 0 &&
			info(m, 2).bytes_live == 0,
		"told");
	CHECK(mm(unregister)(m, 2) == 0 && mm(allocate_queue)(m, 1, 2000 * MIB, NULL, NULL) == 0, "%s",
		strerror(errno));
	CHECK(told[1].n == 1 && told[1].block != NULL && info(m, 1).bytes_live == 600 * MIB,
		"the queue was kept");
	CHECK(mm(register)(m, 2, "x", "g", -1, NULL, NULL) == 0 &&
			mm(alloc)(m, 2, 600 * MIB, TA_MM_DEVICE, NULL) != NULL,
		"it gives way later");
}

// The first that is told changes the group while the others are not told yet.
static void meddles(uint64_t id, const ta_mm_chunking *c, void *const *blocks, size_t n, void *m)
{
	hear(id, c, blocks, n, m);
	if (told[id].times > 1)
		return;
	CHECK(mm(queue)(m, 3, &all, 1, 100) == -1 && errno == EBUSY,
		"a queue that is being allocated for: %s", strerror(errno));
	CHECK(mm(allocate_queue)(m, 3, TA_MM_ASK, NULL, NULL) == -1 && errno == EBUSY, "%s",
		strerror(errno));
	CHECK(mm(queue)(m, id, &all, 1, 100) == 0, "its own is over");
	CHECK(mm(set_group)(m, 3, "other") == 0, "group");
	CHECK(mm(free)(m, blocks[0], NULL) == 0, "free");
	CHECK(mm(unregister)(m, id) == 0, "%s", strerror(errno));
}

// Everybody is told once, and has all that was allocated.
static void meddling(void)
{
	ta_mm *m = start(0, "meddling");
	all = (ta_mm_request){1 << 10, lengths, 1, 0, 0, TA_MM_DEVICE};
	for (uint64_t i = 1; i <= 4; i++) {
		mm(register)(m, i, "x", "g", -1, NULL, NULL);
		CHECK(mm(on_ready)(m, i, i == 1 ? meddles : hear, m) == 0, "ready");
		if (i != 2)
			CHECK(mm(queue)(m, i, &all, 1, 100) == 0, "queue");
	}
	CHECK(mm(allocate_queue)(m, 2, TA_MM_ASK, NULL, NULL) == 0, "%s", strerror(errno));
	for (uint64_t i = 1; i <= 4; i++)
		CHECK(told[i].times == 1 && told[i].n == (i != 2), "%d was told %zu times of %zu", (int)i,
			told[i].times, told[i].n);
	CHECK(mm(free)(m, told[3].block, NULL) == 0 && mm(free)(m, told[4].block, NULL) == 0,
		"free: %s", strerror(errno));
	CHECK(info(m, 3).bytes_live == 0 && info(m, 4).bytes_live == 0,
		"somebody has what nobody was told of");
	CHECK(mm(queue)(m, 3, &all, 1, 100) == 0 &&
			mm(allocate_queue)(m, 3, TA_MM_ASK, NULL, NULL) == 0 && told[3].times == 2,
		"once more");
}

// A block that its own stream still works with is not another's when its instance gives way,
// although that is idle on the stream that it used last.
static void own_stream(void)
{
	ta_mm *m = start(100 * MIB, "streams");
	CUstream s, other;
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuStreamCreate(&other, 1));
	mm(set_mode)(m, TA_MM_ACTIVE);
	for (uint64_t i = 1; i <= 2; i++)
		mm(register)(m, i, "x", "g", -1, NULL, NULL);
	void *p = mm(alloc)(m, 1, 60 * MIB, TA_MM_DEVICE, s);
	OK(fake.fake_launch((CUdeviceptr)p, 60 * MIB, 7, s));
	mm(use)(m, 1, other);
	char *q = mm(alloc)(m, 2, 60 * MIB, TA_MM_DEVICE, other);
	CHECK(q != NULL, "%s", strerror(errno));
	CHECK(!fake.fake_busy((CUdeviceptr)q, 60 * MIB, other, 1),
		"handed out while a stream writes to it");
	// The same where the stream of the block is gone.
	p = mm(alloc)(m, 1, 40 * MIB, TA_MM_DEVICE, s);
	OK(fake.fake_launch((CUdeviceptr)p, 40 * MIB, 7, s));
	OK(cu.cuStreamDestroy_v2(s));
	mm(use)(m, 1, other);
	CHECK(mm(free)(m, q, other) == 0 && mm(alloc)(m, 2, 90 * MIB, TA_MM_DEVICE, other) != NULL,
		"%s", strerror(errno));
}

// A block that is freed on one stream, and worked with on that which its instance used last,
// is not another's before both are done with it.
static void last_stream(void)
{
	ta_mm *m = start(0, "last");
	CUstream s, other;
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuStreamCreate(&other, 1));
	for (uint64_t i = 1; i <= 2; i++)
		mm(register)(m, i, "x", "g", -1, NULL, NULL);
	for (int kind = TA_MM_DEVICE; kind <= TA_MM_MANAGED; kind++)
		for (size_t n = 1000; n < 8 * MIB; n *= 1000) {
			char *p = mm(alloc)(m, 1, n, kind, s);
			CHECK(p != NULL && mm(use)(m, 1, other) == 0, "kind %d", kind);
			OK(fake.fake_launch((CUdeviceptr)p, n, 7, other));
			// the driver tells of what it is too early for
			CHECK(mm(free)(m, p, s) == 0, "%s", strerror(errno));
			char *q = mm(alloc)(m, 2, n, kind, s);
			CHECK(!fake.fake_busy((CUdeviceptr)q, n, s, 1),
				"%zu bytes are handed out while a stream writes to them", n);
		}
}

// Blocks are given back beside a capture, which goes on.
static void captured(void)
{
	ta_mm *m = start(0, "capture");
	CUstream s, other;
	CUgraph graph = NULL;
	void *p[4];
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuStreamCreate(&other, 1));
	mm(register)(m, 1, "x", "g", -1, NULL, NULL);
	for (int kind = TA_MM_DEVICE; kind <= TA_MM_MANAGED; kind++)
		CHECK((p[kind] = mm(alloc)(m, 1, 3 * MIB, kind, other)) != NULL, "kind %d", kind);
	size_t used = fake.fake_used(0);
	OK(cu.cuStreamBeginCapture_v2(s, 0));
	for (int kind = TA_MM_DEVICE; kind <= TA_MM_MANAGED; kind++)
		CHECK(mm(free)(m, p[kind], other) == 0, "kind %d: %s", kind, strerror(errno));
	CHECK(fake.fake_used(0) < used, "managed memory was not given back");
	CHECK((p[0] = mm(alloc)(m, 1, 3 * MIB, TA_MM_MANAGED, other)) != NULL, "%s", strerror(errno));
	OK(cu.cuStreamEndCapture(s, &graph));
	CHECK(graph != NULL, "no graph");
}

// The blocks of a device that is reset are gone, and so are its streams.
static void reset(void)
{
	ta_mm *m = start(0, "reset");
	CUcontext c;
	CUstream s;
	OK(cu.cuStreamCreate(&s, 1));
	for (uint64_t i = 1; i <= 2; i++)
		mm(register)(m, i, "x", "g", -1, NULL, NULL);
	for (int kind = TA_MM_DEVICE; kind <= TA_MM_MANAGED; kind++)
		CHECK(mm(alloc)(m, 1, MIB, kind, s) != NULL, "kind %d", kind);
	OK(cu.cuDevicePrimaryCtxReset_v2(0));
	CHECK(info(m, 1).bytes_live == 0 && info(m, 1).frees == 4, "it has %zu bytes",
		(size_t)info(m, 1).bytes_live);
	OK(cu.cuDevicePrimaryCtxRetain(&c, 0));
	OK(cu.cuCtxSetCurrent(c));
	CHECK(mm(alloc)(m, 1, 600 * MIB, TA_MM_DEVICE, NULL) != NULL, "%s", strerror(errno));
	// asks the stream of 1
	CHECK(mm(alloc)(m, 2, 600 * MIB, TA_MM_DEVICE, NULL) != NULL, "%s", strerror(errno));
	CHECK(mm(unregister)(m, 1) == 0, "%s", strerror(errno));
}

// A program that knows less of a structure is not written beyond it, the second time either.
static void older(void)
{
	ta_mm *m = start(100 * MIB, "older");
	struct {
		size_t size;
		double proportion;
		uint64_t cap, beyond[30];
	} less = {.size = 24};
	size_t shape[1] = {100};
	ta_mm_request r = {1, shape, 1, 0, 0, TA_MM_DEVICE};
	mm(register)(m, 1, "x", "g", -1, NULL, NULL);
	memset(less.beyond, 7, sizeof less.beyond);
	for (int i = 0; i < 2; i++) {
		CHECK(mm(get)(m, 1, (ta_mm_info *)&less) == 0 && less.size == 24 && less.cap == 100 * MIB,
			"size %zu", less.size);
		CHECK(mm(chunk)(m, "g", 1000, &r, 1, 100, (ta_mm_chunking *)&less) == 0 &&
				less.size == 24 && less.cap == 0,
			"size %zu", less.size);
		CHECK(mm(allocate_queue)(m, 1, 1000, NULL, (ta_mm_chunking *)&less) == 0 && less.size == 24,
			"size %zu", less.size);
		CHECK(less.beyond[0] == 0x0707070707070707, "written beyond it");
	}
}

// Blocks of instances that give way on one thread are freed by it while others work with theirs.
enum { THREADS = 6, ROUNDS = 2000 };
static ta_mm *shared;

static void *work(void *arg)
{
	uint64_t id = (uint64_t)(uintptr_t)arg;
	unsigned seed = (unsigned)id;
	for (int i = 0; i < ROUNDS; i++) {
		void *p = mm(alloc)(shared, id, 1 + rand_r(&seed) % (24 * MIB), rand_r(&seed) % 4, NULL);
		CHECK(p != NULL || errno == ENOMEM || errno == ENOENT, "%s", strerror(errno));
		switch (rand_r(&seed) % 8) {
		case 0:
			mm(use)(shared, id, NULL);
			break;
		case 1: // it has blocks, unless they were taken from it
			if (mm(unregister)(shared, id) == 0)
				CHECK(mm(register)(shared, id, "t", "g", -1, NULL, NULL) == 0, "register: %s",
					strerror(errno));
			break;
		}
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[2 * THREADS];
	shared = start(64 * MIB, "threads");
	mm(set_mode)(shared, TA_MM_ACTIVE);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(mm(register)(shared, i + 1, "t", "g", -1, NULL, NULL) == 0, "register");
	for (uintptr_t i = 0; i < 2 * THREADS; i++) // two threads for each instance
		pthread_create(&t[i], NULL, work, (void *)(i / 2 + 1));
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(mm(register)(shared, 9, "last", "g", -1, NULL, NULL) == 0, "register");
	CHECK(mm(alloc)(shared, 9, 63 * MIB, TA_MM_PINNED, NULL) != NULL,
		"nobody else has anything: %s", strerror(errno));
	for (uint64_t i = 1; i <= THREADS; i++)
		CHECK(info(shared, i).bytes_live <= MIB && info(shared, i).allocs >= info(shared, i).frees,
			"live %zu", (size_t)info(shared, i).bytes_live);
}

int main(int argc, char **argv)
{
	static const struct test cases[] = {{"once", once}, {"nested", nested}, {"hopeless", hopeless},
		{"queue", kept_queue}, {"meddling", meddling}, {"streams", own_stream},
		{"last", last_stream}, {"capture", captured}, {"reset", reset}, {"older", older},
		{"threads", threads}};
	RUN(cases);
}
