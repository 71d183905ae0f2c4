// The inputs of rules: the callers, and the name of the thread.
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
#include "boot_walk.h"
#include "exports.h"
#include "libc_malloc.h"
#include "libc_symbol.h"

static int (*find_address)(const void *, Dl_info *); // where _dl_find_object is missing
static uint64_t deep; // the rules that depend on the caller's callers

void ta_rules_begin(void)
{
	find_address = (__typeof__(find_address))ta_symbol_next("dladdr");
	deep = ta_go_site_deep();
}

// The loader has no name for the program itself. This returns the name of its file.
static uintptr_t name_of(const char *object)
{
	return (uintptr_t)(object[0] != 0 ? object : (const char *)ta_auxv(AT_EXECFN));
}

// Whether the address is in the function of that name of the object.
static int in_function(struct link_map *map, const char *name, uintptr_t address)
{
	struct ta_symbols s = ta_symbols_of(map->l_addr, map->l_ld);
	for (uint32_t i = 0; (i = ta_symbol_find(&s, name, i)) != 0;)
		if (address - map->l_addr - s.all[i].st_value < s.all[i].st_size)
			return 1;
	return 0;
}

// The rules that allow the caller at depth, a return address.
static uint64_t rules_of(uintptr_t address, unsigned depth)
{
	struct ta_object o;
	if (!ta_object_of(address - 1, &o)) {
		Dl_info found;
		if (depth != 0 || find_address == NULL || find_address((void *)address, &found) == 0)
			return ta_go_site_set(depth, 0, 0);
		return ta_go_site_set(depth, name_of(found.dli_fname), 0);
	}
	uint64_t set = ta_go_site_set(depth, name_of(o.map->l_name), address - o.map->l_addr);
	for (uint64_t rest = ta_go_site_functions(depth) & set; rest != 0; rest &= rest - 1) {
		const char *name = (const char *)ta_go_site_function(depth, rest);
		if (!in_function(o.map, name, address - 1))
			set &= ~(rest & -rest);
	}
	return set;
}

// rules_of, from the thread's cache.
static uint64_t cached_rules(ta_thread *t, uintptr_t address, unsigned depth)
{
	uint64_t now = __atomic_load_n(&ta_unloads, __ATOMIC_ACQUIRE);
	if (t->Unloads != now) {
		memset(t->Callers, 0, sizeof t->Callers);
		t->Unloads = now;
	}
	uint64_t key = address | (uint64_t)depth << 62; // no address has so many bits
	size_t i = (key ^ key >> 6 ^ key >> 60) % (sizeof t->Callers / sizeof *t->Callers);
	if (t->Callers[i] != key) {
		t->Callers[i] = 0; // a signal handler that comes here finds nothing half done
		t->Allowed[i] = rules_of(address, depth);
		t->Callers[i] = key;
	}
	return t->Allowed[i];
}

// Removes from a set of rules those that the caller's callers do not allow.
static NOINLINE uint64_t by_stack(ta_thread *t, uint64_t set)
{
	struct ta_stack *s = (struct ta_stack *)ta_go_site_begin((uintptr_t)t);
	if (s == NULL) // no memory, or a signal handler that has interrupted a walk
		return set & ~deep;
	ta_walk(s, TA_SITE_MAX);
	for (unsigned depth = 1; depth < TA_SITE_MAX; depth++)
		set &= depth < s->N ? cached_rules(t, s->Frame[depth].PC + 1, depth) :
							  ta_go_site_set(depth, 0, 0);
	ta_go_site_end((uintptr_t)t);
	return set;
}

static NOINLINE uintptr_t rules_by_caller(uintptr_t address)
{
	ta_thread *t = ta_self->Thread;
	if (ta_self == &ta_heap_none)
		return rules_of(address, 0) & ~deep;
	uint64_t set = cached_rules(t, address, 0);
	return LIKELY((set & deep) == 0) ? set : by_stack(t, set);
}

HOT uintptr_t ta_by_caller(void *address)
{
	return LIKELY(!ta_flags.RulesByCaller) ? ~(uintptr_t)0 : rules_by_caller((uintptr_t)address);
}

EXPORT int dlclose(void *handle)
{
	if (ta_flags.Disabled)
		return ta_next()->dlclose(handle);
	__atomic_add_fetch(&ta_unloads, 1, __ATOMIC_RELEASE); // what is being unloaded may be asked for
	int result = ta_next()->dlclose(handle);
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
	if (!ta_flags.RulesByThread)
		return ta_next()->setname(thread, name);
	int error = ta_next()->setname(thread, name);
	if (thread == TA_RARE(pthread_self)())
		renamed();
	return error;
}

// Declared without the ellipsis of libc's declaration. So the compiler can make a tail call, and a
// child of clone without thread-local storage can make the call.
EXPORT int ta_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
	unsigned long d) __asm__("prctl");

int ta_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	ta_notice(SYS_prctl, option, (long)a, (const void *)b);
	if (!ta_flags.RulesByThread || option != PR_SET_NAME || ta_flags.Filtered)
		return ta_next()->prctl(option, a, b, c, d);
	int result = ta_next()->prctl(option, a, b, c, d);
	if (ta_thread_is_ours())
		renamed();
	return result;
}
