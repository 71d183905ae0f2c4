// Reports of a process that has 192 MiB, three quarters of which it has written to.
#include "common.h"
#include "../../../interpose/tieralloc.h"
#include <sys/wait.h>

#pragma weak ta_get_stats
#pragma weak ta_stats_json
#pragma weak ta_stats_json_with

enum { BLOCKS = 4 };
static char text[1 << 20];
static char *large[BLOCKS];

static void fill(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		CHECK((large[i] = malloc(48 * MIB)) != NULL);
		memset(large[i], 1, 36 * MIB);
	}
}

static void stats(void)
{
	ta_stats s = {.size = sizeof s};
	fill();
	CHECK(ta_get_stats(&s) == 0 && s.bytes_live >= 192 * MIB);
}

static void json(void)
{
	fill();
	CHECK(ta_stats_json(text, sizeof text) < sizeof text);
	puts(text);
}

static void exact(void)
{
	fill();
	CHECK(ta_stats_json_with(text, sizeof text, 2) == 0 && errno == EINVAL);
	CHECK(ta_stats_json_with(text, sizeof text, TA_STATS_EXACT_NODES) < sizeof text);
	puts(text);
}

// A forked child ends, and so does its parent at once.
static void child(void)
{
	int status;
	fill();
	pid_t pid = fork();
	if (pid == 0)
		exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	printf("%d\n", (int)pid);
	fflush(stdout);
	_exit(0);
}

static const struct test tests[] = {{"stats", stats}, {"json", json}, {"exact", exact}, {"child", child}};

int main(int argc, char **argv) { RUN(tests); }
