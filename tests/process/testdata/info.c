// What the heap says of itself, and whether it gives memory back.
#include "common.h"
#include <malloc.h>
#include <pthread.h>

static void fill(void **p, int n, size_t size)
{
	for (int i = 0; i < n; i++) {
		p[i] = malloc(size);
		CHECK(p[i] != NULL);
		memset(p[i], 1, size);
	}
}

static void drop(void **p, int n)
{
	for (int i = 0; i < n; i++)
		free(p[i]);
}

// The purge delay is an hour here, so only malloc_trim gives memory back.
static void trim_size(size_t size)
{
	int n = (int)(12 * MIB / size);
	void **p = malloc(n * sizeof *p);
	memset(p, 0, n * sizeof *p);
	malloc_trim(0);
	long before = rss();
	fill(p, n, size);
	long full = rss();
	drop(p, n);
	long freed = rss();
	int did = malloc_trim(0), again = malloc_trim(0);
	long after = rss();
	CHECK(full - before > (long)(n * size * 9 / 10), "%ld", full - before);
	CHECK(did == 1 || freed - before < (long)MIB, "size %zu: said %d", size, did);
	CHECK(after - before < (long)MIB, "size %zu: %ld before, %ld full, %ld after", size, before,
		full, after);
	CHECK(again == 0, "size %zu: a second trim found more", size);
	free(p);
}

static void trim(void)
{
	static const size_t sizes[] = {16, 100, 1024, 5000, 40000, 200000, MIB, 3 * MIB, 5 * MIB};
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		trim_size(sizes[i]);
}

enum { OTHERS = 100000 };
static void *others[OTHERS];

static void *filler(void *unused)
{
	fill(others, OTHERS, 200);
	return unused;
}

// The memory of a thread that has ended, freed by another.
static void trim_ended(void)
{
	malloc_trim(0);
	long before = rss();
	pthread_t t;
	pthread_create(&t, NULL, filler, NULL);
	pthread_join(t, NULL);
	CHECK(rss() - before > (long)(19 * MIB));
	drop(others, OTHERS);
	CHECK(malloc_trim(0) == 1);
	CHECK(rss() - before < (long)(2 * MIB), "%ld KiB left", (rss() - before) / 1024);
}

static void mallinfo_is_true(void)
{
	struct mallinfo2 a = mallinfo2();
	void *p[64], *big = malloc(20 * MIB);
	fill(p, 64, 1024);
	struct mallinfo2 b = mallinfo2();
	CHECK(b.uordblks - a.uordblks == 64 * 1024, "%zu", b.uordblks - a.uordblks);
	CHECK(b.hblks - a.hblks == 1 && b.hblkhd - a.hblkhd >= 20 * MIB &&
		b.hblkhd - a.hblkhd < 21 * MIB);
	CHECK(b.arena == b.uordblks + b.fordblks && b.keepcost <= b.fordblks + 16);
	struct mallinfo old = mallinfo();
	CHECK((size_t)old.uordblks == b.uordblks && (size_t)old.hblkhd == b.hblkhd);
	drop(p, 64);
	free(big);
	struct mallinfo2 c = mallinfo2();
	CHECK(c.uordblks == a.uordblks, "%zu and %zu", c.uordblks, a.uordblks);
	CHECK(c.hblks == a.hblks && c.hblkhd == a.hblkhd);
	CHECK(c.arena == c.uordblks + c.fordblks && c.keepcost <= c.fordblks, "%zu of %zu", c.keepcost,
		c.fordblks);
}

// The numbers of malloc_info are those of mallinfo2 taken beside it.
static void xml(void)
{
	static char text[64 << 10];
	void *big = malloc(30 * MIB), *few[64];
	fill(few, 64, 3000);
	drop(few, 63);
	FILE *f = fmemopen(text, sizeof text, "w");
	CHECK(malloc_info(1, f) == EINVAL);
	struct mallinfo2 m = mallinfo2();
	CHECK(malloc_info(0, f) == 0);
	fclose(f);
	CHECK(strncmp(text, "<malloc version=", 16) == 0, "%s", text);
	size_t n = strlen(text);
	CHECK(n > 10 && strcmp(text + n - 10, "</malloc>\n") == 0, "%s", text);
	char want[100];
	snprintf(
		want, sizeof want, "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>", m.hblks, m.hblkhd);
	CHECK(strstr(text, want) != NULL, "%s in %s", want, text);
	const char *system = strstr(text, "<system type=\"current\" size=\"");
	CHECK(system != NULL && strtoul(system + 29, NULL, 10) >= 30 * MIB, "%s", text);
	size_t size = malloc_usable_size(few[63]), total, count;
	snprintf(want, sizeof want, "<size from=\"%zu\" to=\"%zu\" ", size, size);
	const char *sizes = strstr(text, want);
	CHECK(sizes != NULL && sizes < strstr(text, "</sizes>") &&
			sscanf(sizes + strlen(want), "total=\"%zu\" count=\"%zu\"/>", &total, &count) == 2,
		"%s in %s", want, text);
	CHECK(count >= 1 && total == count * size, "%zu of %zu bytes", count, total);
	drop(few + 63, 1);
	free(big);
}

static void options(void)
{
	CHECK(mallopt(M_MMAP_THRESHOLD, 65536) == 1 && mallopt(M_ARENA_MAX, 1) == 1 &&
		mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1);
	malloc_stats(); // to standard error, nothing more
}

// A thread that has been cancelled asks for the figures while 30 MiB are in use.
static void *asks(void *gate)
{
	pthread_barrier_wait(gate); // no cancellation point
	malloc_stats();
	pthread_testcancel();
	return NULL;
}

static void cancelled(void)
{
	void *big = malloc(30 * MIB), *result = NULL;
	pthread_barrier_t gate;
	pthread_t t;
	CHECK(big != NULL && pthread_barrier_init(&gate, NULL, 2) == 0 &&
		pthread_create(&t, NULL, asks, &gate) == 0);
	CHECK(pthread_cancel(t) == 0);
	pthread_barrier_wait(&gate);
	CHECK(pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED);
	free(big);
}

static const struct test tests[] = {{"trim", trim}, {"trim ended thread", trim_ended},
	{"mallinfo", mallinfo_is_true}, {"malloc_info", xml}, {"options", options},
	{"cancelled", cancelled}};

int main(int argc, char **argv) { RUN(tests); }
