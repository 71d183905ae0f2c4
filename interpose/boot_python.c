#include "boot_python.h"
#include "libc_symbol.h"

enum { UNKNOWN, NONE, FREE_THREADED = 1 << 8 }; // or the minor version of Python 3

static void *(*thread_state)(void);
static uintptr_t found;

// The minor version of the program's Python, and whether it is a build without the global lock:
// objects have another layout there.
static uintptr_t version_of(const char *v)
{
	static const char without[] = "free-threading";
	if (v == NULL || v[0] != '3' || v[1] != '.')
		return NONE;
	uintptr_t minor = 0;
	for (const char *c = v + 2; *c >= '0' && *c <= '9' && minor < 100; c++)
		minor = 10 * minor + (uintptr_t)(*c - '0');
	for (; *v != 0; v++) {
		size_t n = 0;
		while (without[n] != 0 && v[n] == without[n])
			n++;
		if (without[n] == 0)
			return minor | FREE_THREADED;
	}
	return minor > NONE ? minor : NONE;
}

static uintptr_t find(void)
{
	const char *(*version)(void);
	*(void **)&version = ta_symbol_first("Py_GetVersion");
	*(void **)&thread_state = ta_symbol_first("PyGILState_GetThisThreadState");
	return version != NULL && thread_state != NULL ? version_of(version()) : NONE;
}

// PyGILState_GetThisThreadState reads thread-local storage.
struct ta_python ta_python_here(void)
{
	struct ta_python here = {0};
	uintptr_t minor = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
	if (minor == UNKNOWN) {
		minor = find();
		__atomic_store_n(&found, minor, __ATOMIC_RELEASE);
	}
	if (minor != NONE)
		here = (struct ta_python){(uintptr_t)thread_state(), minor};
	return here;
}
