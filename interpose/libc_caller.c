// The inputs of rules: the object that calls, and the name of the thread.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "boot.h"
#include "exports.h"
#include "libc_malloc.h"
#include "libc_symbol.h"

// From glibc 2.35 on the loader finds the object of an address without a lock. The function is
// looked up at run time, because a direct reference would keep the library from loading with an
// older glibc.
static int (*find_object)(void *, struct dl_find_object *);
static int (*find_address)(const void *, Dl_info *); // where there is no such function

HOT void ta_rules_begin(void)
{
	if (!ta_flags.RulesByLib)
		return;
	find_object = (__typeof__(find_object))ta_symbol_next("_dl_find_object");
	find_address = (__typeof__(find_address))ta_symbol_next("dladdr");
}

// The loader has no name for the program itself. This returns the name of its file.
HOT static uintptr_t name_of(const char *object)
{
	return (uintptr_t)(object[0] != 0 ? object : (const char *)ta_auxv(AT_EXECFN));
}

// The path of the object that contains the address, or 0.
HOT static uintptr_t object_of(void *address)
{
	if (find_object != NULL) {
		struct dl_find_object found;
		if (find_object(address, &found) != 0 || found.dlfo_link_map == NULL)
			return 0;
		return name_of(found.dlfo_link_map->l_name);
	}
	Dl_info found;
	return find_address != NULL && find_address(address, &found) != 0 ? name_of(found.dli_fname) :
																		0;
}

HOT static uintptr_t libs_of(void *address)
{
	ta_thread *t = ta_self->Thread;
	if (ta_self == &ta_heap_none)
		return ta_go_lib_set(object_of(address));
	uint64_t now = __atomic_load_n(&ta_unloads, __ATOMIC_ACQUIRE);
	if (t->Unloads != now) {
		memset(t->Callers, 0, sizeof t->Callers);
		t->Unloads = now;
	}
	size_t i = ((uintptr_t)address ^ (uintptr_t)address >> 6) %
		(sizeof t->Callers / sizeof *t->Callers);
	if (t->Callers[i] != (uintptr_t)address) {
		t->Callers[i] = 0; // a signal handler that comes here finds nothing half done
		t->Libs[i] = ta_go_lib_set(object_of(address));
		t->Callers[i] = (uintptr_t)address;
	}
	return t->Libs[i];
}

HOT uintptr_t ta_libs(void *address)
{
	return LIKELY(!ta_flags.RulesByLib) ? ~(uintptr_t)0 : libs_of(address);
}

EXPORT int dlclose(void *handle)
{
	ta_symbols_resolve();
	if (ta_flags.Disabled)
		return ta_next.dlclose(handle);
	__atomic_add_fetch(&ta_unloads, 1, __ATOMIC_RELEASE); // what is being unloaded may be asked for
	int result = ta_next.dlclose(handle);
	__atomic_add_fetch(&ta_unloads, 1, __ATOMIC_RELEASE);
	return result;
}

static void renamed(void)
{
	int saved = errno;
	ta_heap *h = ta_enter();
	if (h != NULL) {
		ta_go_renamed((uintptr_t)h);
		ta_leave(h);
	}
	errno = saved;
}

// Follows a change of the thread's name, because a rule may depend on it. A change by another
// thread takes effect a little later.
EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	ta_symbols_resolve();
	if (!ta_flags.RulesByThread)
		return ta_next.setname(thread, name);
	int error = ta_next.setname(thread, name);
	if (thread == pthread_self())
		renamed();
	return error;
}

// Declared without the ellipsis of libc's declaration. So the compiler can make a tail call, and a
// child of clone without thread-local storage can make the call.
EXPORT int ta_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
	unsigned long d) __asm__("prctl");

int ta_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	ta_symbols_resolve();
	ta_filter_notice(SYS_prctl, option);
	if (!ta_flags.RulesByThread || option != PR_SET_NAME)
		return ta_next.prctl(option, a, b, c, d);
	int result = ta_next.prctl(option, a, b, c, d);
	if (ta_thread_is_ours())
		renamed();
	return result;
}
