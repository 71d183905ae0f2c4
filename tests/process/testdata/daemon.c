// A program that forks twice at once and lives on in the grandchild, as daemons do: that has
// background work, which returns memory while the program sleeps. Children forked later have none.
#include "common.h"
#include "begun.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>

enum { BLOCKS = 64 << 10, SIZE = 1024 };

static void *block[BLOCKS];

// Resident memory in KiB, read without a call of malloc.
static long resident(void)
{
	char text[100] = "";
	int fd = open("/proc/self/statm", O_RDONLY);
	CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
	close(fd);
	return atol(strchr(text, ' ')) * 4;
}

static void serve(void)
{
	long before = resident();
	for (int i = 0; i < BLOCKS; i++)
		block[i] = memset(malloc(SIZE), 1, SIZE);
	for (double until = now() + 20; threads() <= 2;)
		CHECK(now() < until);
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	for (double until = now() + 20; resident() > before + 16 * 1024; usleep(1000))
		CHECK(now() < until, "%ld KiB, %ld before", resident(), before);
	volatile unsigned *counted = dlsym(RTLD_DEFAULT, "__nptl_nthreads");
	// a new thread is counted for a moment
	for (double until = now() + 20; *counted != 1; usleep(1000))
		CHECK(now() < until, "libc counts %u", *counted);
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		usleep(300000);
		CHECK(threads() == 1, "%d threads", threads());
		_exit(7);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 7 << 8);
}

int main(int argc, char **argv)
{
	int ends[2];
	char c;
	CHECK(argc > 0 && pipe(ends) == 0);
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			int late = now() - begun >= 0.2; // it may have no thread
			if (!late)
				serve();
			_exit(write(ends[1], late ? "l" : "x", 1) != 1);
		}
		_exit(0);
	}
	close(ends[1]);
	CHECK(read(ends[0], &c, 1) == 1);
	if (c == 'l') {
		close(ends[0]);
		execv("/proc/self/exe", argv); // again, on a busy machine
	}
	int status = 0;
	for (double until = now() + 20; status != 7 << 8; usleep(10000)) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(threads() == 1 ? 7 : 1);
		CHECK(waitpid(pid, &status, 0) == pid && now() < until);
	}
	CHECK(memset(malloc(3 << 20), 1, 3 << 20));
	for (double until = now() + 20; threads() <= 2;) // the parent, too
		CHECK(now() < until);
	return 0;
}
