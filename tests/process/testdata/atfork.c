// A library whose fork handlers allocate, as many do to renew locks or pools. Its
// constructor runs before the preloaded library's, so its handlers surround ours.
#include "common.h"
#include <pthread.h>
#include <sys/wait.h>

static void work(const char *where)
{
	for (size_t n = 1; n < 20 * MIB; n = n * 3 + 1) {
		char *p = malloc(n);
		CHECK(p != NULL, "%zu bytes in the %s handler", n, where);
		p[n - 1] = 1;
		p = realloc(p, n + 100000);
		CHECK(p != NULL);
		free(p);
	}
}

static void prepare(void) { work("prepare"); }
static void parent(void) { work("parent's"); }
static void child(void) { work("child's"); }

#ifdef LIBRARY
__attribute__((constructor)) static void load(void) { pthread_atfork(prepare, parent, child); }
#else
int main(void)
{
	pthread_atfork(prepare, parent, child);
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();
		if (pid == 0)
			work("child after all"), _exit(3);
		int status;
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3,
			"%#x", status);
	}
}
#endif
