// The replaceable C++ operators new and delete, under their Itanium ABI names. They are written in
// C, because the library must not need libstdc++. When memory is short, new does what the standard
// says: it calls the new handler until that gives up, then throws std::bad_alloc. Both go through
// the host's libstdc++.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "libc_malloc.h"
#include "libc_symbol.h"
#include "syscall.h"

typedef void (*handler)(void);
typedef void *(*plain_form)(size_t, const void *);
typedef void *(*aligned_form)(size_t, size_t, const void *); // of nothrow forms

// The basic operators that the program defines itself. The standard derives the other forms from
// these ([new.delete]), so the derived forms call them too: the same code then allocates and frees
// a block. An array form is basic for its own derived forms, and itself derives from the plain
// form.
struct basic { // in the order of names in ta_cxx_resolve
	void *(*new)(size_t), *(*new_array)(size_t);
	void *(*new_aligned)(size_t, size_t), *(*new_array_aligned)(size_t, size_t);
	void (*delete)(void *), (*delete_array)(void *);
	void (*delete_aligned)(void *, size_t), (*delete_array_aligned)(void *, size_t);
};
static struct basic theirs; // NULL where ours serves

// The nothrow forms of the next library for the first four of these, if the program defines those:
// plain, array, and the same aligned. They are found once. A search at each call would take the
// loader's lock, and a constructor that holds it may wait for a thread that makes such a call.
static void *nothrow_forms[4];

HOT void ta_cxx_resolve(void)
{
	static const ta_symbol_name names[] HOT_DATA = {"_Znwm", "_Znam", "_ZnwmSt11align_val_t",
		"_ZnamSt11align_val_t", "_ZdlPv", "_ZdaPv", "_ZdlPvSt11align_val_t",
		"_ZdaPvSt11align_val_t"};
	enum { N = sizeof names / sizeof *names };
	_Static_assert(sizeof theirs == N * sizeof(void *), "one name each");
	void *found[N] = {NULL};
	ta_symbols_before(found, names, N);
	for (int i = 1; i < N; i += 2) // an array form
		if (found[i] == NULL)
			found[i] = found[i - 1];
	memcpy(&theirs, found, sizeof theirs);
	static const char forms[][40] HOT_DATA = {"_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t",
		"_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t"};
	for (int i = 0; i < 4; i++)
		if (found[i] != NULL)
			nothrow_forms[i] = ta_symbol_next(forms[i]);
}

// Counters of new and delete, and which of the functions form a pair.
enum {
	NEW_ONE = TA_CALL_NEW | TA_HOW_NEW,
	NEW_ARRAY = TA_CALL_NEW | TA_HOW_ARRAY,
	DELETE_ONE = TA_CALL_OTHER_FREE_NULL | TA_HOW_NEW,
	DELETE_ARRAY = TA_CALL_OTHER_FREE_NULL | TA_HOW_ARRAY,
};

// A function of the host's libstdc++, wherever it is loaded. It is never the library's own.
static void *cxx(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	if (f == NULL) {
		void *lib = dlopen("libstdc++.so.6", RTLD_NOLOAD | RTLD_LAZY);
		if (lib != NULL) {
			f = dlsym(lib, name);
			ta_next()->dlclose(lib); // others keep it
		}
	}
	return f;
}

// Takes back the count of a failed call, which may still succeed.
static void recount(unsigned call)
{
	ta_heap *h = ta_enter();
	if (h != NULL) {
		h->Calls[call]--;
		ta_leave(h);
	}
}

// The nothrow form has found no memory, and is counted as failed. A new handler may still find
// some. libstdc++'s nothrow forms call the throwing form, which is ours. They turn an exception, of
// a new handler too, into NULL, which C cannot.
static NOINLINE void *nothrow_failed(size_t n, size_t align, unsigned how)
{
	handler (*get)(void) = (handler(*)(void))cxx("_ZSt15get_new_handlerv");
	if (get == NULL || get() == NULL)
		return NULL; // nothing will be thrown
	recount(TA_CALL_NEW);
	recount(TA_CALL_OTHER_FAILED);
	static const char nothrow; // std::nothrow_t has no members
	int array = how == NEW_ARRAY;
	if (align > TA_GRANULE) {
		aligned_form f = (aligned_form)cxx(
			array ? "_ZnamSt11align_val_tRKSt9nothrow_t" : "_ZnwmSt11align_val_tRKSt9nothrow_t");
		return f != NULL ? f(n, align, &nothrow) : NULL;
	}
	plain_form f = (plain_form)cxx(array ? "_ZnamRKSt9nothrow_t" : "_ZnwmRKSt9nothrow_t");
	return f != NULL ? f(n, &nothrow) : NULL;
}

// new has failed, and is counted as failed.
static NOINLINE void *new_failed(size_t n, size_t align, unsigned how, void *caller)
{
	handler (*get)(void) = (handler(*)(void))cxx("_ZSt15get_new_handlerv");
	handler h;
	while (get != NULL && (h = get()) != NULL) {
		h();
		void *p = align > TA_GRANULE ? ta_memalign(align, n, how, caller) :
									   ta_malloc_other(n, how, caller);
		recount(TA_CALL_NEW);
		recount(TA_CALL_OTHER_FAILED);
		if (p != NULL)
			return p;
	}
	void (*throw_bad_alloc)(void) = (void (*)(void))cxx("_ZSt17__throw_bad_allocv");
	if (throw_bad_alloc != NULL)
		throw_bad_alloc();
	ta_say("tieralloc: operator new: out of memory\n");
	TA_RARE(abort)();
}

// Allocates a block for new, or returns NULL.
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
	return LIKELY(p != NULL) ? p : nothrow_failed(n, TA_GRANULE, how);
}

static inline void *new_aligned(size_t n, size_t align, unsigned how, int nothrow, void *caller)
{
	void *p = ta_memalign(align < TA_GRANULE ? TA_GRANULE : align, n, how, caller);
	if (LIKELY(p != NULL))
		return p;
	return nothrow ? nothrow_failed(n, align, how) : new_failed(n, align, how, caller);
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

#define NEW(symbol, ...)    HOT EXPORT void *symbol(__VA_ARGS__)
#define DELETE(symbol, ...) HOT EXPORT void symbol(void *p, ##__VA_ARGS__)
#define UNUSED              __attribute__((unused))

// Returns the result of the basic form that the program defines, if there is one, from a derived
// form.
#define DERIVED_FROM(basic, ...) \
	if (UNLIKELY(theirs.basic != NULL)) \
	return theirs.basic(__VA_ARGS__)
// The same for a nothrow form. type is that of the form.
#define NOTHROW_FROM(basic, form, type, ...) \
	if (UNLIKELY(theirs.basic != NULL)) \
	return nothrow_forms[form] != NULL ? ((type)nothrow_forms[form])(__VA_ARGS__, t) : \
										 theirs.basic(__VA_ARGS__)

NEW(_Znwm, size_t n) { return new_throwing(n, NEW_ONE, CALLER); }

NEW(_Znam, size_t n)
{
	DERIVED_FROM(new, n);
	return new_throwing(n, NEW_ARRAY, CALLER);
}

NEW(_ZnwmRKSt9nothrow_t, size_t n, UNUSED const void *t)
{
	NOTHROW_FROM(new, 0, plain_form, n);
	return new_nothrow(n, NEW_ONE, CALLER);
}

NEW(_ZnamRKSt9nothrow_t, size_t n, UNUSED const void *t)
{
	NOTHROW_FROM(new_array, 1, plain_form, n);
	return new_nothrow(n, NEW_ARRAY, CALLER);
}

NEW(_ZnwmSt11align_val_t, size_t n, size_t a) { return new_aligned(n, a, NEW_ONE, 0, CALLER); }

NEW(_ZnamSt11align_val_t, size_t n, size_t a)
{
	DERIVED_FROM(new_aligned, n, a);
	return new_aligned(n, a, NEW_ARRAY, 0, CALLER);
}

NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, size_t n, size_t a, UNUSED const void *t)
{
	NOTHROW_FROM(new_aligned, 2, aligned_form, n, a);
	return new_aligned(n, a, NEW_ONE, 1, CALLER);
}

NEW(_ZnamSt11align_val_tRKSt9nothrow_t, size_t n, size_t a, UNUSED const void *t)
{
	NOTHROW_FROM(new_array_aligned, 3, aligned_form, n, a);
	return new_aligned(n, a, NEW_ARRAY, 1, CALLER);
}

// A delete whose derived form gets the size, or nothing that it needs.
#define DELETE_FROM(symbol, basic, n, how, ...) \
	DELETE(symbol, ##__VA_ARGS__) \
	{ \
		DERIVED_FROM(basic, p); \
		delete_any(p, n, how); \
	}
#define DELETE_ALIGNED_FROM(symbol, basic, n, how, ...) \
	DELETE(symbol, ##__VA_ARGS__) \
	{ \
		DERIVED_FROM(basic, p, a); \
		delete_any(p, n, how); \
	}

DELETE(_ZdlPv) { delete_any(p, TA_NO_SIZE, DELETE_ONE); }
DELETE_FROM(_ZdaPv, delete, TA_NO_SIZE, DELETE_ARRAY)
DELETE_FROM(_ZdlPvRKSt9nothrow_t, delete, TA_NO_SIZE, DELETE_ONE, UNUSED const void *t)
DELETE_FROM(_ZdaPvRKSt9nothrow_t, delete_array, TA_NO_SIZE, DELETE_ARRAY, UNUSED const void *t)
DELETE_FROM(_ZdlPvm, delete, n, DELETE_ONE, size_t n)
DELETE_FROM(_ZdaPvm, delete_array, n, DELETE_ARRAY, size_t n)
DELETE(_ZdlPvSt11align_val_t, UNUSED size_t a) { delete_any(p, TA_NO_SIZE, DELETE_ONE); }
DELETE_ALIGNED_FROM(_ZdaPvSt11align_val_t, delete_aligned, TA_NO_SIZE, DELETE_ARRAY, size_t a)
DELETE_ALIGNED_FROM(_ZdlPvmSt11align_val_t, delete_aligned, n, DELETE_ONE, size_t n, size_t a)
DELETE_ALIGNED_FROM(
	_ZdaPvmSt11align_val_t, delete_array_aligned, n, DELETE_ARRAY, size_t n, size_t a)
DELETE_ALIGNED_FROM(_ZdlPvSt11align_val_tRKSt9nothrow_t, delete_aligned, TA_NO_SIZE, DELETE_ONE,
	size_t a, UNUSED const void *t)
DELETE_ALIGNED_FROM(_ZdaPvSt11align_val_tRKSt9nothrow_t, delete_array_aligned, TA_NO_SIZE,
	DELETE_ARRAY, size_t a, UNUSED const void *t)
