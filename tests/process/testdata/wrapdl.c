// A library that stands in for the loader's functions and for others, and looks for the next one
// when it is called first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define WRAP(result, name, args, ...) \
	result name args \
	{ \
		static __thread int within; \
		if (within++ > 3) \
			write(2, #name " comes back\n", sizeof #name + 11), abort(); \
		result r = ((result(*) args)dlsym(RTLD_NEXT, #name))(__VA_ARGS__); \
		within--; \
		return r; \
	}
WRAP(void *, dlopen, (const char *path, int flags), path, flags)
WRAP(void *, dlmopen, (Lmid_t ns, const char *path, int flags), ns, path, flags)
WRAP(int, dlclose, (void *lib), lib)
WRAP(int, prctl, (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d),
	option, a, b, c, d)

void _exit(int status)
{
	static int within;
	if (within++ > 3)
		abort();
	((void (*)(int))dlsym(RTLD_NEXT, "_exit"))(status);
	abort();
}
