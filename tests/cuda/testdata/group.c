// Two processes under one limit. With an argument, the program is the second one, and is killed
// before it gives back what it has: that returns within 100 ms.
#include "common.h"
#include <signal.h>

static const char *who;

static void see(void)
{
	size_t free, total;
	OK(cu.cuMemGetInfo_v2(&free, &total));
	printf("%s: free %zu of %zu MiB\n", who, free / MIB, total / MIB);
}

static void take(size_t n)
{
	CUdeviceptr p;
	int e = cu.cuMemAlloc_v2(&p, n * MIB);
	printf("%s: %zu MiB: %d\n", who, n, e);
}

// Another process caches what it does not use. It returns that when it next frees.
static void cached(char *program)
{
	int down[2], up[2];
	char c;
	CUdeviceptr p;
	CHECK(pipe(down) == 0 && pipe(up) == 0, "pipe");
	if (fork() == 0) {
		dup2(down[0], 0);
		dup2(up[1], 3);
		execl(program, program, "second", "again", NULL);
		_exit(1);
	}
	CHECK(read(up[0], &c, 1) == 1, "the second was not refused");
	OK(cu.cuMemAlloc_v2(&p, MIB));
	OK(cu.cuMemFree_v2(p));
	CHECK(write(down[1], &c, 1) == 1, "write");
	wait(NULL);
	usleep(120000);
}

int main(int argc, char **argv)
{
	char command[4096];
	CUdeviceptr p;
	setvbuf(stdout, NULL, _IONBF, 0);
	who = argc > 1 ? "second" : "first";
	load();
	see();
	if (argc > 2) {
		char c = 0;
		take(50);
		CHECK(write(3, &c, 1) == 1 && read(0, &c, 1) == 1, "pipes");
		take(50);
		return 0;
	}
	if (argc > 1) {
		take(30);
		take(14);
		see();
		take(11);
		raise(SIGKILL);
	}
	OK(cu.cuMemAlloc_v2(&p, 30 * MIB));
	OK(cu.cuMemFree_v2(p));
	cached(argv[0]);
	take(10);
	OK(cu.cuMemAlloc_v2(&p, 30 * MIB));
	see();
	snprintf(command, sizeof command, "exec %s second", argv[0]);
	printf("ended by %d\n", system(command) & 127);
	usleep(120000);
	see();
	take(24);
	take(2);
	OK(cu.cuMemFree_v2(p));
	take(30);
	return 0;
}
