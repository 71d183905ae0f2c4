#include "boot_python.h"
#include "boot_walk.h"
#include "elf_symbol.h"
#include "libc_symbol.h"

enum { UNKNOWN, NONE, FREE_THREADED = 1 << 8 }; // or the minor version of Python 3

static void *(*thread_state)(void);
static struct ta_python python; // of all threads

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

static void find_eval(void)
{
	static const char name[] = "_PyEval_EvalFrameDefault";
	struct ta_object o;
	uintptr_t at = (uintptr_t)ta_symbol_first(name);
	if (at == 0 || !ta_object_of(at, &o))
		return;
	struct ta_symbols s = ta_symbols_of(o.map->l_addr, o.map->l_ld);
	uint32_t i = ta_symbol_find(&s, name, 0);
	python.eval = at;
	python.eval_end = at + s.all[i].st_size;
}

static uintptr_t find(void)
{
	const char *(*version)(void);
	*(void **)&version = ta_symbol_first("Py_GetVersion");
	*(void **)&thread_state = ta_symbol_first("PyGILState_GetThisThreadState");
	uintptr_t minor = version != NULL && thread_state != NULL ? version_of(version()) : NONE;
	if (minor != NONE)
		find_eval();
	return minor;
}

// PyGILState_GetThisThreadState reads thread-local storage.
struct ta_python ta_python_here(void)
{
	struct ta_python here = {0};
	uintptr_t minor = __atomic_load_n(&python.minor, __ATOMIC_ACQUIRE);
	if (minor == UNKNOWN) {
		minor = find();
		__atomic_store_n(&python.minor, minor, __ATOMIC_RELEASE);
	}
	if (minor == NONE)
		return here;
	here = python;
	here.thread = (uintptr_t)thread_state();
	return here;
}
