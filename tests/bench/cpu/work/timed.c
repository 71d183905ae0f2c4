// timed PRELOAD PROGRAM ARGS... runs the program with LD_PRELOAD and writes to descriptor 3: the
// nanoseconds from start to end, the microseconds of processor time, the peak of resident memory
// in KiB, and the status as wait has it.
//
// It is there for the peak: what the kernel counts as a process' peak includes what the
// process was before exec, so a large parent would put its own size under every figure.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

static long micros(struct timeval t) { return t.tv_sec * 1000000l + t.tv_usec; }

int main(int argc, char **argv)
{
	struct rusage use;
	int status;
	if (argc < 3 || fcntl(3, F_SETFD, FD_CLOEXEC) != 0) {
		fprintf(stderr, "usage: timed PRELOAD PROGRAM ARGS... 3>FILE\n");
		return 2;
	}
	long start = now();
	pid_t pid = fork();
	if (pid == 0) {
		setenv("LD_PRELOAD", argv[1], 1);
		execv(argv[2], argv + 2);
		fprintf(stderr, "timed: %s: %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &use) != pid) {
		fprintf(stderr, "timed: %s\n", strerror(errno));
		return 2;
	}
	long ns = now() - start;
	dprintf(3, "%ld %ld %ld %d\n", ns, micros(use.ru_utime) + micros(use.ru_stime), use.ru_maxrss, status);
	return 0;
}
