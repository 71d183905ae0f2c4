// Asks what the library knows of the process. With the argument "setuid" it is set-user-ID, else it
// first takes variables out of its environment, which moves the pointers on the stack.
#include "common.h"
#include <dlfcn.h>
#include <sys/auxv.h>

extern char **environ;

int main(int argc, char **argv)
{
	int (*tier_of)(const void *) = (int (*)(const void *))dlsym(RTLD_DEFAULT, "ta_tier_of");
	if (argc > 1)
		CHECK(getauxval(AT_SECURE) == 1);
	else
		for (char *name; environ[0] != NULL; free(name)) {
			name = strdup(environ[0]);
			*strchr(name, '=') = 0;
			CHECK(unsetenv(name) == 0);
		}
	void *p = hide(malloc(100));
	printf("%d\n", tier_of != NULL ? tier_of(p) : -1);
	free(p);
	return 0;
}
