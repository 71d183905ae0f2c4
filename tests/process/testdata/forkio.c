// fork while another thread holds stdio's list of files, as fflush(NULL) does, and allocates.
#include "common.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// glibc's own, which no header declares.
extern void _IO_list_lock(void), _IO_list_unlock(void);

static volatile int held, forking;
static pid_t forker;

// Whether the thread sleeps.
static int asleep(pid_t tid)
{
	char path[64], text[256] = "";
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	int f = open(path, O_RDONLY);
	CHECK(f >= 0 && read(f, text, sizeof text - 1) > 0);
	close(f);
	return strstr(text, ") S ") != NULL;
}

// Enough to need memory of every kind from what all threads share.
static void allocate(void)
{
	for (int round = 0; round < 3; round++)
		for (size_t size = 16; size <= 64 * MIB; size *= 4) {
			char *p = malloc(size);
			CHECK(p != NULL);
			p[size - 1] = 1;
			free(hide(p));
		}
}

static void *holder(void *unused)
{
	_IO_list_lock();
	held = 1;
	for (int i = 0; !(forking && asleep(forker)); i++) {
		CHECK(i < 20000, "nobody waits for the list");
		usleep(1000);
	}
	allocate();
	_IO_list_unlock();
	return unused;
}

static void *flusher(void *unused)
{
	allocate();
	CHECK(fflush(NULL) == 0);
	return unused;
}

// The list can be had by a second thread: nobody has kept it.
static void list_is_free(void)
{
	pthread_t t;
	CHECK(pthread_create(&t, NULL, flusher, NULL) == 0 && pthread_join(t, NULL) == 0);
}

static void child_goes_on(pid_t child)
{
	int status = -1;
	CHECK(child >= 0);
	if (child == 0) {
		CHECK(fflush(NULL) == 0);
		list_is_free();
		_exit(7);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7,
		"%#x", status);
	list_is_free();
}

static void held_elsewhere(void)
{
	alarm(120);
	pthread_t t;
	forker = (pid_t)syscall(SYS_gettid);
	CHECK(pthread_create(&t, NULL, holder, NULL) == 0);
	while (!held)
		usleep(1000);
	forking = 1;
	pid_t child = fork();
	child_goes_on(child);
	CHECK(pthread_join(t, NULL) == 0);
}

static void alone(void)
{
	alarm(120);
	child_goes_on(fork());
}

// In the middle of what the list guards, as a signal handler is that interrupts it.
static void held_here(void)
{
	alarm(120);
	list_is_free(); // there has been a second thread
	_IO_list_lock();
	pid_t child = fork();
	if (child != 0)
		_IO_list_unlock();
	child_goes_on(child);
}

static const struct test tests[] = {
	{"held elsewhere", held_elsewhere}, {"alone", alone}, {"held here", held_here}};

int main(int argc, char **argv) { RUN(tests); }
