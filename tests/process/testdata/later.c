// A program with a control plane, in its first seconds: its limit on descriptors stays, and the Go
// runtime's threads come when the heap has grown, or with "at once" before main. libc does not
// count them.
#include "common.h"
#include "begun.h"
#include <dlfcn.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
	struct rlimit few = {100, 1000}, l;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	int first = threads(), at_once = argc > 1;
	CHECK(at_once ? first > 2 : first <= 2, "%d threads", first);
	while (!at_once && now() < begun + 0.7) // longer than it waits before it looks twice
		CHECK(threads() <= 2, "%d threads", threads());
	CHECK(memset(malloc(3 << 20), 1, 3 << 20));
	double until = now() + 20;
	for (int there = 0; now() < until;) {
		CHECK(getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur == 100);
		if (!there && threads() > 2)
			there = 1, until = now() + 0.3;
	}
	CHECK(threads() > 2);
	volatile unsigned *counted = dlsym(RTLD_DEFAULT, "__nptl_nthreads");
	for (until = now() + 20; *counted > 1 && now() < until;) // one may be starting
		CHECK(*counted >= 1);
	CHECK(*counted == 1, "libc counts %u", *counted);
	return 0;
}
