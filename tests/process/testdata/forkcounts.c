// Prints the blocks that a forked child says were allocated, before this process has made a report
// and after it. The child has its parent's blocks, and makes 100 of its own.
#include "common.h"
#include "../../../interpose/tieralloc.h"
#include <sys/wait.h>

enum { PARENTS = 1000, OWN = 100 };

#pragma weak ta_get_stats

static uint64_t allocated(void)
{
	ta_stats s = {.size = sizeof s};
	CHECK(ta_get_stats(&s) == 0);
	CHECK(s.blocks_live >= PARENTS);
	return s.blocks_total_alloc;
}

static void blocks(int n)
{
	for (int i = 0; i < n; i++)
		hide(malloc(100));
}

static void child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		blocks(OWN);
		puts(allocated() >= PARENTS ? "all" : "own");
		exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	blocks(PARENTS);
	child();
	CHECK(allocated() >= PARENTS);
	child();
}
