// Tiers as a program can ask for them: ta_alloc and its like, and what rules need to
// know of a thread and of a caller.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <elf.h>
#include <sys/prctl.h>
#include "heap.h"
#include "libc_symbol.h"
#include "boot.h"
#include "exports.h"
#include "tieralloc.h"

int ta_rules, ta_rules_by_lib, ta_rules_by_thread, ta_throttled, ta_secure;

// From glibc 2.35 on the loader tells without a lock which object has an address; it is
// looked up, or the library would not load with an older one.
static int (*find_object)(void *, struct dl_find_object *);
static int (*find_address)(const void *, Dl_info *); // where there is no such function

HOT void ta_rules_begin(void)
{
	if (!ta_rules_by_lib)
		return;
	find_object = (__typeof__(find_object))ta_symbol_next("_dl_find_object");
	find_address = (__typeof__(find_address))ta_symbol_next("dladdr");
}

// The program itself has no name as an object: then it is that of its file.
HOT static uintptr_t name_of(const char *object)
{
	return (uintptr_t)(object[0] != 0 ? object : (const char *)ta_auxv(AT_EXECFN));
}

// The path of the object that has the address, or 0.
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

uint64_t ta_unloads = 1;

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
	return LIKELY(!ta_rules_by_lib) ? ~(uintptr_t)0 : libs_of(address);
}

EXPORT int dlclose(void *handle)
{
	ta_symbols_resolve();
	if (ta_disabled)
		return ta_next.dlclose(handle);
	__atomic_add_fetch(&ta_unloads, 1, __ATOMIC_RELEASE); // what is being unloaded may be asked for
	int result = ta_next.dlclose(handle);
	__atomic_add_fetch(&ta_unloads, 1, __ATOMIC_RELEASE);
	return result;
}

// Go numbers the hints from 0 (internal/config), and NO_HINT is its tiers.NoHint.
enum { NO_HINT = 8 };

static inline uintptr_t number_of(ta_hint hint)
{
	return hint == TA_DEFAULT ? NO_HINT : (uintptr_t)hint - TA_HOT;
}

static inline ta_hint hint_of(uintptr_t number)
{
	return number == NO_HINT ? TA_DEFAULT : (ta_hint)(number + TA_HOT);
}

// A block from the thread's heap for the hint, as ta_malloc_fast takes one from its base.
static inline void *alloc_fast(size_t n, ta_hint hint)
{
	ta_heap *h = hint == TA_DEFAULT ? NULL : ta_self->Thread->Heaps[hint - TA_HOT];
	if (UNLIKELY(h == NULL || n > TA_MAX_CLASS))
		return NULL;
	void *p = ta_pop(n <= TA_DIRECT_MAX ? h->Direct[(n + 15) >> 4] : h->Cur[ta_class(n)]);
	if (LIKELY(p != NULL))
		h->Calls[TA_CALL_TA_ALLOC]++;
	return p;
}

EXPORT void *ta_alloc(size_t bytes, ta_hint hint)
{
	if (UNLIKELY((unsigned)hint > TA_PREFER_FAST))
		return ta_failed(TA_CALL_TA_ALLOC, EINVAL);
	void *fast = alloc_fast(bytes, hint);
	if (LIKELY(fast != NULL))
		return fast;
	ta_ready();
	if (ta_disabled)
		return ta_libc.malloc(bytes);
	ta_heap *h = ta_enter_heap();
	if (h == NULL)
		return errno = ENOMEM, NULL;
	void *p = (void *)(ta_go_alloc((uintptr_t)h, bytes, number_of(hint)) & ~TA_ZERO_BIT);
	h->Calls[TA_CALL_TA_ALLOC]++;
	if (p == NULL) {
		h->Calls[TA_CALL_OTHER_FAILED]++;
		errno = ENOMEM;
	}
	ta_leave(h);
	return p;
}

EXPORT void ta_free(void *p)
{
	ta_heap *h = ta_self;
	if (UNLIKELY(h == &ta_heap_none || p == NULL))
		return ta_free_as(p, TA_CALL_TA_FREE, "ta_free", TA_CALL_OTHER_FREE_NULL, TA_NO_SIZE);
	h->Calls[TA_CALL_TA_FREE]++;
	ta_free_any(p, "ta_free", TA_CALL_OTHER_FREE_NULL, TA_NO_SIZE);
}

EXPORT ta_hint ta_set_hint(ta_hint hint)
{
	if ((unsigned)hint > TA_PREFER_FAST)
		return errno = EINVAL, (ta_hint)-1;
	ta_heap *h = ta_enter();
	if (h == NULL)
		return TA_DEFAULT;
	ta_hint before = hint_of(ta_go_set_hint((uintptr_t)h, number_of(hint)));
	ta_leave(h);
	return before;
}

EXPORT ta_hint ta_set_default_hint(ta_hint hint)
{
	if ((unsigned)hint > TA_PREFER_FAST)
		return errno = EINVAL, (ta_hint)-1;
	ta_ready();
	ta_heap *h = ta_disabled ? NULL : ta_enter_heap();
	if (h == NULL)
		return TA_WARM;
	ta_hint before = hint_of(ta_go_set_default_hint((uintptr_t)h, number_of(hint)));
	ta_leave(h);
	return before;
}

EXPORT int ta_tier_of(const void *p)
{
	uintptr_t tier = ta_go_tier_of((uintptr_t)p);
	return tier <= TA_SLOW ? (int)tier : (errno = EINVAL, -1);
}

EXPORT int ta_tier_of_range(const void *p, size_t offset, size_t n, size_t bytes[3])
{
	if (bytes == NULL)
		return errno = EINVAL, -1;
	int error = (int)ta_go_tier_of_range((uintptr_t)p, offset, n, (uintptr_t)bytes);
	return error == 0 ? 0 : (errno = error, -1);
}

enum { ERRNO_MAX = 4095 };

EXPORT void *ta_move(void *p, ta_tier dst)
{
	ta_heap *h = ta_disabled ? NULL : ta_enter_heap();
	if (h == NULL)
		return errno = ta_disabled ? EINVAL : ENOMEM, NULL;
	uintptr_t to = ta_go_move((uintptr_t)h, (uintptr_t)p, (uintptr_t)dst);
	h->Calls[TA_CALL_TA_MOVE]++;
	int copies = to > ERRNO_MAX && to != (uintptr_t)p;
	h->Calls[TA_CALL_REALLOC_ALLOCS] += copies;
	h->Calls[TA_CALL_REALLOC_FREES] += copies;
	if (copies) {
		size_t n = ta_usable(p, "ta_move");
		memcpy((void *)to, p, n);
		if (ta_throttled) {
			ta_go_copied((uintptr_t)h, (uintptr_t)p, n);
			ta_go_copied((uintptr_t)h, to, n);
		}
	}
	ta_leave(h);
	if (to <= ERRNO_MAX)
		return errno = (int)to, NULL;
	if (copies)
		ta_free_any(p, "ta_move", TA_CALL_FREE_NULL | TA_HOW_ANY, TA_NO_SIZE);
	return (void *)to;
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

// A rule may go by the thread's name, so its changes are looked for. One that another
// thread makes is seen a little later.
EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	ta_symbols_resolve();
	if (!ta_rules_by_thread)
		return ta_next.setname(thread, name);
	int error = ta_next.setname(thread, name);
	if (thread == pthread_self())
		renamed();
	return error;
}

// Not declared with an ellipsis, as libc's is: so it can be a tail call, and a child of clone that
// has no thread-local storage can make it.
EXPORT int ta_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
	unsigned long d) __asm__("prctl");

int ta_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	ta_symbols_resolve();
	if (!ta_rules_by_thread || option != PR_SET_NAME)
		return ta_next.prctl(option, a, b, c, d);
	int result = ta_next.prctl(option, a, b, c, d);
	if (ta_thread_is_ours())
		renamed();
	return result;
}
