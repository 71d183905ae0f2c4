// What the settings have done to a program of which the loader says that it runs with another's
// rights.
#include "common.h"
#include <dirent.h>
#include <dlfcn.h>
#include <sys/auxv.h>

static int threads(void)
{
	int n = -2; // . and ..
	DIR *d = opendir("/proc/self/task");
	CHECK(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

int main(void)
{
	CHECK(getauxval(AT_SECURE) == 1);
	int (*tier_of)(const void *) = dlsym(RTLD_DEFAULT, "ta_tier_of");
	CHECK(tier_of != NULL, "the library is not there");
	void *small = hide(malloc(100)), *huge = hide(malloc(8 * MIB));
	memset(huge, 1, 8 * MIB);
	usleep(20000); // the control plane, if it is there, says what happened
	printf("tiers %d %d, threads %d\n", tier_of(small), tier_of(huge), threads());
	fflush(stdout);
	free(huge);
	free(small);
	return 0;
}
