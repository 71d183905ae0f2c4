// Room for queues: who is asked before anything is cut, and how what does not fit is.
#include "mm_common.h"

static int asked;
static struct {
	ta_mm *m;
	void *block;
} has[8];

static void give_way(uint64_t instance, void *arg)
{
	(void)arg;
	asked = asked * 10 + (int)instance;
	CHECK(mm(free)(has[instance].m, has[instance].block, NULL) == 0, "free");
}

// An instance of a group with a part, which has a block of so many MiB.
static void join(ta_mm *m, uint64_t id, const char *group, double part, size_t mib)
{
	CHECK(mm(register)(m, id, "x", group, part, give_way, NULL) == 0, "register %d", (int)id);
	has[id].m = m;
	if (mib != 0)
		CHECK((has[id].block = mm(alloc)(m, id, mib * MIB, TA_MM_DEVICE, NULL)) != NULL, "block %d",
			(int)id);
}

// Instance id queues n arrays of 100 runs and so many bytes each, and they are had.
static int have(
	ta_mm *m, uint64_t id, size_t n, size_t bytes, int unchunkable, size_t free, ta_mm_chunking *c)
{
	size_t shape[1] = {100};
	ta_mm_request r[64];
	*c = (ta_mm_chunking){.size = sizeof *c};
	for (size_t i = 0; i < n; i++)
		r[i] = (ta_mm_request){bytes / 100, shape, 1, 0, unchunkable, TA_MM_DEVICE};
	CHECK(mm(queue)(m, id, r, n, 100) == 0, "queue: %s", strerror(errno));
	return mm(allocate_queue)(m, id, free, NULL, c);
}

static void idle(void)
{
	ta_mm *m = start(0, "idle");
	ta_mm_chunking c;
	join(m, 1, "a", 0.2, 300);
	join(m, 2, "b", 0.2, 300);
	join(m, 3, "b", 0.2, 300);
	mm(use)(m, 1, NULL);
	CHECK(have(m, 3, 1, 400 * MIB, 0, TA_MM_ASK, &c) == 0 && c.chunks == 1 && asked == 2,
		"%zu chunks, asked %d", c.chunks, asked);
	CHECK(have(m, 3, 1, 400 * MIB, 0, TA_MM_ASK, &c) == 0 && c.chunks == 2 && asked == 21,
		"%zu chunks, asked %d", c.chunks, asked);
}

static void busy(void)
{
	ta_mm *m = start(0, "busy");
	ta_mm_chunking c;
	CUstream s;
	OK(cu.cuStreamCreate(&s, 1));
	join(m, 1, "a", 0.2, 600);
	join(m, 2, "b", 0.2, 0);
	mm(use)(m, 1, s);
	OK(fake.fake_launch((CUdeviceptr)has[1].block, MIB, 1, s));
	CHECK(have(m, 2, 1, 600 * MIB, 0, TA_MM_ASK, &c) == 0 && c.chunks == 2 && asked == 0,
		"%zu chunks, asked %d", c.chunks, asked);
	fake.fake_complete(s);
}

static void managers(void)
{
	ta_mm *m = start(0, "managers"), *other = mm(create)(0, 0, "other");
	ta_mm_chunking c;
	join(other, 1, "a", 0.2, 300);
	join(m, 2, "a", 0.2, 300);
	join(other, 3, "a", 0.2, 300);
	join(m, 4, "b", 0.2, 0);
	mm(use)(other, 1, NULL);
	CHECK(have(m, 4, 1, 600 * MIB, 0, TA_MM_ASK, &c) == 0 && c.chunks == 1 && asked == 23,
		"%zu chunks, asked %d", c.chunks, asked);
	CHECK(info(other, 3).evictions == 1 && info(m, 2).evictions == 1, "evictions");
	// a single block, too
	CHECK(
		mm(alloc)(m, 4, 400 * MIB, TA_MM_DEVICE, NULL) != NULL && asked == 231, "asked %d", asked);
}

// Where the budget is short, only the group can help.
static void budget(void)
{
	ta_mm *m = start(1000 * MIB, "budget");
	ta_mm_chunking c;
	join(m, 1, "a", 0.3, 300);
	join(m, 2, "b", 0.3, 200);
	join(m, 3, "b", 0.3, 0);
	mm(set_mode)(m, TA_MM_ACTIVE);
	CHECK(have(m, 3, 1, 500 * MIB, 0, 1000 * MIB, &c) == 0 && c.chunks == 1 && asked == 2,
		"%zu chunks, asked %d", c.chunks, asked);
}

static void held(void)
{
	ta_mm *m = start(0, "held");
	ta_mm_chunking c;
	join(m, 1, "a", 0.2, 600);
	join(m, 2, "b", 0.2, 0);
	CHECK(mm(hold)(m, 1, 0) == -1 && errno == EINVAL && mm(hold)(m, 1, 2) == -1 && errno == EINVAL,
		"not held");
	CHECK(mm(hold)(m, 9, 1) == -1 && errno == ENOENT && mm(hold)(m, 1, 1) == 0, "hold");
	CHECK(have(m, 2, 1, 600 * MIB, 0, TA_MM_ASK, &c) == 0 && c.chunks == 2 && asked == 0,
		"%zu chunks, asked %d", c.chunks, asked);
	ta_mm_asked who = {0};
	CHECK(mm(ask_idle)(m, 2, 1, NULL) == -1 && errno == EINVAL && mm(ask_idle)(m, 9, 1, &who) == 0,
		"ask_idle");
	CHECK(mm(ask_idle)(m, 2, 1, &who) == 0 && mm(hold)(m, 1, 0) == 0 &&
			mm(ask_idle)(m, 2, 1, &who) == 1 && asked == 1,
		"asked %d", asked);
}

// For what would not fit though all gave way nobody is asked.
static void hopeless(void)
{
	ta_mm *m = start(0, "hopeless");
	ta_mm_chunking c;
	join(m, 1, "a", 0.2, 600);
	join(m, 2, "b", 0.2, 0);
	CHECK(have(m, 2, 1, 1100 * MIB, 1, TA_MM_ASK, &c) == -1 && errno == ENOTSUP && asked == 0,
		"asked %d: %s", asked, strerror(errno));
	CHECK(have(m, 2, 1, 500 * MIB, 1, TA_MM_ASK, &c) == 0 && asked == 1, "asked %d: %s", asked,
		strerror(errno));
}

// 60 arrays of 17 MiB take 60 of 18 MiB, of which 1 GiB has 56.
static void rounded(void)
{
	ta_mm *m = start(0, "rounded");
	ta_mm_chunking c;
	join(m, 1, "a", 0.2, 0);
	CHECK(have(m, 1, 60, 17 * MIB, 0, TA_MM_ASK, &c) == 0 && c.chunks == 2, "%zu chunks: %s",
		c.chunks, strerror(errno));
	CHECK(c.chunk_length == 94 && info(m, 1).refused == 0, "%zu runs, %d refused", c.chunk_length,
		(int)info(m, 1).refused);
}

// What is free is not as the program says.
static void shorter(void)
{
	ta_mm *m = start(0, "shorter");
	ta_mm_chunking c;
	CUdeviceptr hog = 0;
	OK(cu.cuMemAlloc_v2(&hog, 500 * MIB));
	join(m, 1, "a", 0.2, 0);
	CHECK(have(m, 1, 2, 500 * MIB, 0, 2000 * MIB, &c) == 0, "%s", strerror(errno));
	CHECK(c.chunks == 3 && c.chunk_length >= 34 && c.chunk_length < 50, "%zu chunks of %zu",
		c.chunks, c.chunk_length);
	CHECK(info(m, 1).bytes_live == 2 * c.chunk_length * (500 * MIB / 100), "live %zu",
		(size_t)info(m, 1).bytes_live);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"idle", idle}, {"busy", busy}, {"managers", managers}, {"budget", budget},
		{"held", held}, {"hopeless", hopeless}, {"rounded", rounded}, {"shorter", shorter}};
	for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run();
			CHECK(fake.fake_illegals() == 0, "%lu illegal calls", fake.fake_illegals());
			puts("ok");
			return 0;
		}
	return 2;
}
