// The Python thread of a request, whose stack snapshots show (internal/pystack).
#include "cuda_driver.h"
#include "libc_symbol.h"

enum { UNKNOWN, NONE }; // or the minor version of Python 3

static void *(*thread_state)(void);

// The minor version of the program's Python, if its threads have stacks that can be read. A build
// without the global lock has another layout.
static uint64_t find(void)
{
	static const char without[] = "free-threading";
	const char *(*version)(void);
	*(void **)&version = ta_symbol_first("Py_GetVersion");
	*(void **)&thread_state = ta_symbol_first("PyGILState_GetThisThreadState");
	const char *v = version != NULL && thread_state != NULL ? version() : NULL;
	if (v == NULL || v[0] != '3' || v[1] != '.')
		return NONE;
	uint64_t minor = 0;
	for (const char *c = v + 2; *c >= '0' && *c <= '9' && minor < 100; c++)
		minor = 10 * minor + (uint64_t)(*c - '0');
	for (; *v != 0; v++) {
		size_t n = 0;
		while (without[n] != 0 && v[n] == without[n])
			n++;
		if (without[n] == 0)
			return NONE;
	}
	return minor > NONE ? minor : NONE;
}

// PyGILState_GetThisThreadState reads thread-local storage, and needs no lock.
void ta_cuda_python(ta_cuda_request *r)
{
	static uint64_t known;
	uint64_t minor = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
	if (minor == UNKNOWN) {
		minor = find();
		__atomic_store_n(&known, minor, __ATOMIC_RELEASE);
	}
	if (minor == NONE || ta_flags.Filtered)
		return;
	r->Python = (uint64_t)thread_state();
	r->PythonMinor = minor;
}
