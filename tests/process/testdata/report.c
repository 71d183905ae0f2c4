// Reports of a process that has 192 MiB, three quarters of which it has written to.
#include "common.h"
#include "../../../interpose/tieralloc.h"
#include <fcntl.h>
#include <sys/prctl.h>
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

// How many KiB of its anonymous memory the process has read or written since that was asked for
// last, or since the fork.
static long referenced(int again)
{
	static char smaps[1 << 20];
	long sum = 0, n, inode = 0;
	int fd = open("/proc/self/smaps", O_RDONLY), size = 0, got;
	CHECK(fd >= 0);
	while ((got = read(fd, smaps + size, sizeof smaps - 1 - size)) > 0)
		size += got;
	close(fd);
	for (char *line = strtok(smaps, "\n"); line != NULL; line = strtok(NULL, "\n"))
		if (sscanf(line, "%*x-%*x %*s %*s %*s %ld", &n) == 1)
			inode = n;
		else if (inode == 0 && sscanf(line, "Referenced: %ld", &n) == 1)
			sum += n;
	if (again) {
		fd = open("/proc/self/clear_refs", O_WRONLY);
		CHECK(fd >= 0 && write(fd, "1", 1) == 1 && close(fd) == 0);
	}
	return sum;
}

// What a report reads, and a forked child up to the end of fork, with so many MiB of blocks.
static void reads(long mib)
{
	int status;
	ta_stats s = {.size = sizeof s};
	for (long i = 0; i < (long)(mib * MIB / 112); i++)
		CHECK(hide(malloc(100)) != NULL);
	referenced(1);
	if (ta_get_stats != NULL)
		CHECK(ta_get_stats(&s) == 0);
	printf("%ld ", referenced(1));
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		printf("%ld\n", referenced(0));
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void reads_little(void) { reads(1); }
static void reads_much(void) { reads(512); }

static const struct test tests[] = {{"stats", stats}, {"json", json}, {"exact", exact},
	{"child", child}, {"reads-little", reads_little}, {"reads-much", reads_much}};

// A huge page of which one byte is read counts as read: there are none where reads are counted. The
// library is loaded after that is settled.
static void without_huge_pages(char **argv)
{
	if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0) {
		CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0, "%m");
		execv("/proc/self/exe", argv);
		CHECK(0, "%m");
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && strncmp(argv[1], "reads", 5) == 0)
		without_huge_pages(argv);
	RUN(tests);
}
