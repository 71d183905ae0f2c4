// Threads take memory from the fast tier, which is throttled, each block after the
// other. Arguments: threads, blocks per thread, bytes per block, limit in bytes per
// second, burst in bytes, and the period of a timer signal in microseconds (0: none).
// With a limit it verifies after each block that no more than it and the burst has
// passed. It prints the time that all took in nanoseconds, and the report on a second
// line.
#include "common.h"
#include <signal.h>
#include <sys/time.h>

static unsigned long count, bytes;
static double limit, burst;
static uint64_t begin, passed;
static volatile unsigned long signals;

static void handler(int number)
{
	(void)number;
	signals++;
}

static void *take(void *arg)
{
	(void)arg;
	for (unsigned long i = 0; i < count; i++) {
		errno = 0;
		char *p = ta_alloc(bytes, TA_HOT);
		CHECK(p != NULL && errno == 0, "errno %d", errno);
		uint64_t all = __atomic_add_fetch(&passed, bytes, __ATOMIC_SEQ_CST);
		double most = burst + limit * (double)(now_ns() - begin) / 1e9;
		CHECK(limit == 0 || (double)all <= most, "%ju bytes have passed, %.0f may have",
			(uintmax_t)all, most);
		p[0] = 1;
		ta_free(p);
	}
	return NULL;
}

// Others go on while a thread waits for its memory.
static void *wait_long(void *arg)
{
	void *p = ta_alloc(bytes, TA_HOT);
	CHECK(p != NULL, "errno %d", errno);
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	ta_free(p);
	return NULL;
}

static void others(void)
{
	static char json[256 << 10];
	static void *p[1000];
	int awake = 0;
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, wait_long, &awake) == 0, "pthread_create");
	usleep(50000);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 1000; i++)
			CHECK((p[i] = malloc((size_t)i * 70)) != NULL, "malloc");
		free(ta_alloc(6 * MIB, TA_COLD));
		CHECK(ta_stats_json(json, sizeof json) > 0, "json");
		for (int i = 0; i < 1000; i++)
			free(p[i]);
	}
	CHECK(
		!__atomic_load_n(&awake, __ATOMIC_ACQUIRE), "it did not wait, or the others waited for it");
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	static char json[256 << 10];
	enum { MOST = 16 };
	CHECK(argc == 7, "arguments");
	unsigned long threads = strtoul(argv[1], NULL, 10);
	count = strtoul(argv[2], NULL, 10);
	bytes = strtoul(argv[3], NULL, 10);
	limit = strtod(argv[4], NULL);
	burst = strtod(argv[5], NULL);
	long period = atol(argv[6]);
	CHECK(threads <= MOST, "%lu threads", threads);
	if (threads == 0) {
		others();
		return 0;
	}
	ta_set_hint(TA_COLD); // so that nothing else is taken from the fast tier
	if (period > 0) {
		struct sigaction act = {.sa_handler = handler};
		sigaction(SIGALRM, &act, NULL);
		struct itimerval every = {{0, period}, {0, period}};
		setitimer(ITIMER_REAL, &every, NULL);
	}
	begin = now_ns();
	pthread_t thread[MOST];
	for (unsigned long i = 1; i < threads; i++)
		CHECK(pthread_create(&thread[i], NULL, take, NULL) == 0, "pthread_create");
	take(NULL);
	for (unsigned long i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	uint64_t took = now_ns() - begin;
	struct itimerval never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(period == 0 || signals > 20, "%lu signals", signals);
	dprintf(1, "%ju\n", (uintmax_t)took);
	CHECK(ta_stats_json(json, sizeof json) < sizeof json, "the report is long");
	dprintf(1, "%s", json);
	return 0;
}
