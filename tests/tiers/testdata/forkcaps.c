// Threads allocate and free large blocks under hard caps while the process forks. In
// each child the tiers must be charged with what the heap has, no more, so that a
// child is not refused for what its parent's threads were about to do. Arguments: the
// number of forks. It prints how many children were charged with more or less, and
// the most bytes that one was off by.
#include "common.h"
#include <sys/wait.h>

enum { THREADS = 6 };

static int over;

static void *churn(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 77 + 5;
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		size_t n = 5 * MIB + next_random(&seed) % (4 * MIB);
		char *p = ta_alloc(n, (ta_hint)(TA_HOT + next_random(&seed) % 5));
		if (p == NULL)
			continue;
		for (size_t i = 0; i < n; i += 16 * KIB)
			p[i] = 1;
		free(p);
	}
	return NULL;
}

// In the child: how far the tiers' charges are from what the heap has.
static long off_by(void)
{
	static char json[256 << 10];
	CHECK(ta_stats_json(json, sizeof json) < sizeof json, "the report is long");
	long have = (long)figure(json, "heap", "bytes_committed");
	long charged = (long)(figure(json, "fast", "bytes_current") +
		figure(json, "normal", "bytes_current") + figure(json, "slow", "bytes_current"));
	return charged - have;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2, "arguments");
	pthread_t thread[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, churn, (void *)i) == 0, "pthread_create");
	long wrong = 0, worst = 0;
	for (int i = 0; i < atoi(argv[1]); i++) {
		usleep(3000);
		int ends[2];
		CHECK(pipe(ends) == 0, "pipe");
		pid_t child = fork();
		CHECK(child >= 0, "fork");
		if (child == 0) {
			long n = off_by();
			CHECK(write(ends[1], &n, sizeof n) == sizeof n, "write");
			_exit(0);
		}
		long n;
		int status;
		CHECK(read(ends[0], &n, sizeof n) == sizeof n, "read");
		CHECK(waitpid(child, &status, 0) == child && status == 0, "status %d", status);
		close(ends[0]);
		close(ends[1]);
		wrong += n != 0;
		if (labs(n) > labs(worst))
			worst = n;
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	dprintf(1, "%ld %ld\n", wrong, worst);
	return 0;
}
