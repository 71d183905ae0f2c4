// Prints the page faults that a fork costs the parent, and the child until it ends.
#include "common.h"
#include <sys/resource.h>
#include <sys/wait.h>

static long faults(int who)
{
	struct rusage u;
	CHECK(getrusage(who, &u) == 0);
	return u.ru_minflt;
}

int main(void)
{
	long parent = 0, child = 0;
	free(hide(malloc(100)));
	for (int i = 0; i < 3; i++) { // the first has more to touch
		parent = faults(RUSAGE_SELF), child = faults(RUSAGE_CHILDREN);
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		parent = faults(RUSAGE_SELF) - parent;
		CHECK(waitpid(pid, NULL, 0) == pid);
		child = faults(RUSAGE_CHILDREN) - child;
	}
	printf("%ld %ld\n", parent, child);
}
