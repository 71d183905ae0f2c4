// timed PRELOAD PROGRAM ARGS... runs the program with LD_PRELOAD and writes to descriptor 3: the
// nanoseconds from start to end, the microseconds of processor time, those of the system among
// them, the page faults, the peak of resident memory in KiB, and the status as wait has it.
//
// It is there for the peak. What the kernel counts as a process' peak includes what the
// process was before exec, so a large parent would put its own size under every figure. And it
// counts loosely: each processor adds up some dozens of pages before it tells, and a program of 1.5
// MiB is said to have 1.2 to 1.5. A process that is about to end still has nearly all that it ever
// had, and its status file is exact then (Linux 6.16): the peak is the larger of the two.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
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

// The peak that the status file of a process tells, in KiB.
static long told(pid_t pid)
{
	char line[256];
	long peak = 0;
	snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
	FILE *f = fopen(line, "r");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "VmHWM: %ld", &peak) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return peak;
}

// Waits for the end of a traced child; returns the peak of which it tells when it is about to end.
// Its signals are its own.
static long end_of(pid_t pid, int *status, struct rusage *use)
{
	long peak = 0;
	while (wait4(pid, status, 0, use) == pid && WIFSTOPPED(*status)) {
		int event = *status >> 16, signal = WSTOPSIG(*status);
		if (event == PTRACE_EVENT_EXIT)
			peak = told(pid);
		ptrace(PTRACE_CONT, pid, NULL, event != 0 ? 0 : signal);
	}
	return peak > use->ru_maxrss ? peak : use->ru_maxrss;
}

int main(int argc, char **argv)
{
	struct rusage use = {0};
	int status = -1, ready[2];
	char word;
	if (argc < 3 || fcntl(3, F_SETFD, FD_CLOEXEC) != 0) {
		fprintf(stderr, "usage: timed PRELOAD PROGRAM ARGS... 3>FILE\n");
		return 2;
	}
	if (pipe(ready) != 0) {
		fprintf(stderr, "timed: %s\n", strerror(errno));
		return 2;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(ready[1]);
		if (read(ready[0], &word, 1) == 0) { // it is traced, or cannot be
			close(ready[0]);
			setenv("LD_PRELOAD", argv[1], 1);
			execv(argv[2], argv + 2);
			fprintf(stderr, "timed: %s: %s\n", argv[2], strerror(errno));
		}
		_exit(127);
	}
	if (pid > 0)
		ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT);
	long start = now();
	close(ready[0]);
	close(ready[1]);
	long peak = pid > 0 ? end_of(pid, &status, &use) : 0;
	long ns = now() - start;
	if (status == -1) {
		fprintf(stderr, "timed: %s\n", strerror(errno));
		return 2;
	}
	long system = micros(use.ru_stime);
	dprintf(3, "%ld %ld %ld %ld %ld %d\n", ns, micros(use.ru_utime) + system, system,
		use.ru_minflt + use.ru_majflt, peak, status);
	return 0;
}
