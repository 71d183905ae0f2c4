// The replaceable C++ operators new and delete, under their Itanium ABI names.
// They are C: the library must not need libstdc++. When memory is out, new does
// what the standard says: call the new handler until it gives up, then throw
// std::bad_alloc, both by way of the host's libstdc++.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "heap.h"

typedef void (*handler)(void);

// How new and delete are counted, and which of them go together.
enum {
	NEW_ONE = TA_CALL_NEW | TA_HOW_NEW,
	NEW_ARRAY = TA_CALL_NEW | TA_HOW_ARRAY,
	DELETE_ONE = TA_CALL_OTHER_FREE_NULL | TA_HOW_NEW,
	DELETE_ARRAY = TA_CALL_OTHER_FREE_NULL | TA_HOW_ARRAY,
};

// A function of the host's libstdc++, wherever it is loaded, and not ours.
static void *cxx(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	if (f == NULL) {
		void *lib = dlopen("libstdc++.so.6", RTLD_NOLOAD | RTLD_LAZY);
		if (lib != NULL)
			f = dlsym(lib, name);
	}
	return f;
}

// A call that failed at first is not to be counted as it was: as one that goes on
// to succeed, or not at all.
static void recount(unsigned call)
{
	ta_heap *h = ta_enter();
	if (h != NULL) {
		h->Calls[call]--;
		ta_leave(h);
	}
}

// libstdc++'s own nothrow forms call the throwing form, which is ours, and turn
// what is thrown, by a new handler too, into NULL. C cannot.
static void *nothrow_by_libstdcxx(size_t n, size_t align, unsigned how)
{
	handler (*get)(void) = (handler(*)(void))cxx("_ZSt15get_new_handlerv");
	if (get == NULL || get() == NULL)
		return NULL; // nothing will be thrown
	recount(TA_CALL_NEW);
	recount(TA_CALL_OTHER_FAILED);
	static const char nothrow; // std::nothrow_t has no members
	int array = how == NEW_ARRAY;
	if (align > TA_GRANULE) {
		void *(*f)(size_t, size_t, const void *) = (void *(*)(size_t, size_t, const void *))cxx(
			array ? "_ZnamSt11align_val_tRKSt9nothrow_t" : "_ZnwmSt11align_val_tRKSt9nothrow_t");
		return f != NULL ? f(n, align, &nothrow) : NULL;
	}
	void *(*f)(size_t, const void *) = (void *(*)(size_t, const void *))cxx(array ? "_ZnamRKSt9nothrow_t" : "_ZnwmRKSt9nothrow_t");
	return f != NULL ? f(n, &nothrow) : NULL;
}

// new has failed and is counted so.
static NOINLINE void *new_failed(size_t n, size_t align, unsigned how, void *caller)
{
	handler (*get)(void) = (handler(*)(void))cxx("_ZSt15get_new_handlerv");
	handler h;
	while (get != NULL && (h = get()) != NULL) {
		h();
		void *p = align > TA_GRANULE ? ta_memalign(align, n, how, caller)
					     : ta_malloc_other(n, how, caller);
		recount(TA_CALL_NEW);
		recount(TA_CALL_OTHER_FAILED);
		if (p != NULL)
			return p;
	}
	void (*throw_bad_alloc)(void) = (void (*)(void))cxx("_ZSt17__throw_bad_allocv");
	if (throw_bad_alloc != NULL)
		throw_bad_alloc();
	static const char line[] = "tieralloc: operator new: out of memory\n";
	if (write(2, line, sizeof line - 1) < 0) {
		// nobody is left to tell
	}
	abort();
}

// A block for new, or NULL.
static inline void *new_any(size_t n, unsigned how, void *caller)
{
	void *p = ta_malloc_fast(n);
	if (UNLIKELY(p == NULL))
		return ta_malloc_other(n, how, caller);
	ta_self->Calls[TA_CALL_NEW]++;
	return p;
}

static inline void *new_throwing(size_t n, unsigned how, void *caller)
{
	void *p = new_any(n, how, caller);
	return LIKELY(p != NULL) ? p : new_failed(n, TA_GRANULE, how, caller);
}

HOT static NOINLINE void *new_nothrow(size_t n, unsigned how, void *caller)
{
	void *p = new_any(n, how, caller);
	return LIKELY(p != NULL) ? p : nothrow_by_libstdcxx(n, TA_GRANULE, how);
}

static inline void *new_aligned(size_t n, size_t align, unsigned how, int nothrow, void *caller)
{
	void *p = ta_memalign(align < TA_GRANULE ? TA_GRANULE : align, n, how, caller);
	if (LIKELY(p != NULL))
		return p;
	return nothrow ? nothrow_by_libstdcxx(n, align, how) : new_failed(n, align, how, caller);
}

HOT static NOINLINE void delete_any(void *p, size_t n, unsigned how)
{
	const char *fn = how == DELETE_ONE ? "operator delete" : "operator delete[]";
	ta_heap *h = ta_self;
	if (UNLIKELY(h == &ta_heap_none))
		return ta_free_as(p, TA_CALL_DELETE, fn, how, n);
	h->Calls[TA_CALL_DELETE]++;
	if (LIKELY(p != NULL))
		ta_free_any(p, fn, how, n);
	else
		h->Calls[how & TA_HOW_CALL]++;
}

#define NEW(symbol, ...) HOT EXPORT void *symbol(__VA_ARGS__)
#define DELETE(symbol, ...) HOT EXPORT void symbol(void *p, ##__VA_ARGS__)
#define UNUSED __attribute__((unused))

NEW(_Znwm, size_t n) { return new_throwing(n, NEW_ONE, CALLER); }
NEW(_Znam, size_t n) { return new_throwing(n, NEW_ARRAY, CALLER); }
NEW(_ZnwmRKSt9nothrow_t, size_t n, UNUSED const void *t) { return new_nothrow(n, NEW_ONE, CALLER); }
NEW(_ZnamRKSt9nothrow_t, size_t n, UNUSED const void *t) { return new_nothrow(n, NEW_ARRAY, CALLER); }
NEW(_ZnwmSt11align_val_t, size_t n, size_t a) { return new_aligned(n, a, NEW_ONE, 0, CALLER); }
NEW(_ZnamSt11align_val_t, size_t n, size_t a) { return new_aligned(n, a, NEW_ARRAY, 0, CALLER); }
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, size_t n, size_t a, UNUSED const void *t) { return new_aligned(n, a, NEW_ONE, 1, CALLER); }
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, size_t n, size_t a, UNUSED const void *t) { return new_aligned(n, a, NEW_ARRAY, 1, CALLER); }

DELETE(_ZdlPv) { delete_any(p, TA_NO_SIZE, DELETE_ONE); }
DELETE(_ZdaPv) { delete_any(p, TA_NO_SIZE, DELETE_ARRAY); }
DELETE(_ZdlPvRKSt9nothrow_t, UNUSED const void *t) { delete_any(p, TA_NO_SIZE, DELETE_ONE); }
DELETE(_ZdaPvRKSt9nothrow_t, UNUSED const void *t) { delete_any(p, TA_NO_SIZE, DELETE_ARRAY); }
DELETE(_ZdlPvm, size_t n) { delete_any(p, n, DELETE_ONE); }
DELETE(_ZdaPvm, size_t n) { delete_any(p, n, DELETE_ARRAY); }
DELETE(_ZdlPvSt11align_val_t, UNUSED size_t a) { delete_any(p, TA_NO_SIZE, DELETE_ONE); }
DELETE(_ZdaPvSt11align_val_t, UNUSED size_t a) { delete_any(p, TA_NO_SIZE, DELETE_ARRAY); }
DELETE(_ZdlPvmSt11align_val_t, size_t n, UNUSED size_t a) { delete_any(p, n, DELETE_ONE); }
DELETE(_ZdaPvmSt11align_val_t, size_t n, UNUSED size_t a) { delete_any(p, n, DELETE_ARRAY); }
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, UNUSED size_t a, UNUSED const void *t) { delete_any(p, TA_NO_SIZE, DELETE_ONE); }
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, UNUSED size_t a, UNUSED const void *t) { delete_any(p, TA_NO_SIZE, DELETE_ARRAY); }
