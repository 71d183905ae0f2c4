// Calls whose result or last words are judged by the test.
#include "common.h"
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <time.h>

// operator delete and operator delete[]; not there in a program without libstdc++.
extern __attribute__((weak)) void _ZdlPv(void *), _ZdaPv(void *);

static void say(void *p) { dprintf(1, "%#lx\n", (long)p); }

static void bad(void)
{
	static long data[8];
	say(&data[2]), free(hide(&data[2]));
}

static void none(void)
{
	char *p = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say(p + 64), free(hide(p + 64));
}

static void delete_inside(void)
{
	char *p = malloc(200);
	say(p + 16), _ZdlPv(hide(p + 16));
}

static void delete_array_inside(void)
{
	char *p = malloc(200);
	say(p + 16), _ZdaPv(hide(p + 16));
}

static void delete_foreign(void)
{
	static long data[8];
	say(&data[2]), _ZdlPv(hide(&data[2]));
}

// What glibc answers.
static void answers(void)
{
	CHECK(malloc_info(1, stdout) == EINVAL);
	CHECK(mallopt(99, 0) == 1 && mallopt(-99, 5) == 1);
	CHECK(mallopt(M_MXFAST, -1) == 0 && mallopt(M_MXFAST, 64) == 1);
	CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1 && mallopt(M_ARENA_MAX, 2) == 1);
}

static void status(void) { exit(5); }

// Descriptor 2 becomes the program's own data file.
static void own_file(void)
{
	close(2);
	CHECK(open("data", O_CREAT | O_TRUNC | O_RDWR, 0600) == 2);
	CHECK(rmdir("gone") == 0 && write(2, "DATA", 4) == 4);
	exit(5);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double churn(void)
{
	static char *p[400];
	double begin = seconds();
	for (int i = 0; i < 400; i++)
		p[i] = malloc(200000);
	for (int i = 0; i < 400; i++)
		free(p[i]);
	for (int round = 0; round < 500; round++) {
		for (int i = 0; i < 20; i++) {
			p[i] = malloc(500000);
			CHECK(p[i] != NULL);
			p[i][0] = p[i][499999] = (char)i;
		}
		for (int i = 0; i < 20; i++) {
			CHECK(p[i][0] == (char)i && p[i][499999] == (char)i);
			free(p[i]);
		}
	}
	return seconds() - begin;
}

// Memory locked in core cannot be purged. That must not cost each call an attempt.
static void locked(void)
{
	double plain = churn();
	if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
		printf("cannot lock: %s\n", strerror(errno));
		return;
	}
	double now = churn();
	printf("%.3f s, locked %.3f s\n", plain, now);
	CHECK(now < 20 * plain + 1, "%.3f s, locked %.3f s", plain, now);
	void *huge = malloc(20 * MIB);
	CHECK(huge != NULL && (huge = realloc(huge, 40 * MIB)) != NULL);
	free(huge);
	malloc_trim(0);
}

static const struct test tests[] = {{"bad", bad}, {"none", none}, {"delete", delete_inside},
	{"delete array", delete_array_inside}, {"delete foreign", delete_foreign}, {"answers", answers},
	{"status", status}, {"own file", own_file}, {"locked", locked}};

int main(int argc, char **argv) { RUN(tests); }
