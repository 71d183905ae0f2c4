// The slow paths of malloc and free, and the functions for memory of other allocators.
#ifndef TA_LIBC_MALLOC_H
#define TA_LIBC_MALLOC_H
#include "boot.h"
#include "heap.h"

// The fast paths as calls, for callers to whom one more call does not matter.
void *ta_malloc_any(size_t n);
void ta_free_any(void *p, const char *fn, unsigned how, size_t size);

// Slow paths, in libc_malloc.c. After any of them the caller has nothing to undo. An allocation
// that returns NULL sets errno to ENOMEM. caller is the return address of the function that the
// program called.
void *ta_malloc_slow(size_t n, void *caller);
void *ta_calloc_slow(size_t n, void *caller);
void *ta_malloc_other(size_t n, unsigned how, void *caller);
void *ta_malloc_unusual(size_t n, unsigned how);
void *ta_failed(unsigned call, int error);
void ta_free_checked(void *p, const char *fn, unsigned how, size_t size);
void ta_free_as(void *p, unsigned call, const char *fn, unsigned how, size_t size);
void *ta_memalign(size_t align, size_t n, unsigned how, void *caller);
void *ta_realloc_as(void *p, size_t n, unsigned call, const char *fn, void *caller);
size_t ta_usable(void *p, const char *fn);
size_t ta_usable_slow(void *p, const char *fn);
#define TA_NOT_OURS SIZE_MAX
#define TA_NO_SIZE  SIZE_MAX // where a function that frees is not told

// The rules that allow the caller that has the return address (tiers.CallerSet).
uintptr_t ta_by_caller(void *address);
void ta_rules_begin(void);

// The functions of another allocator: libc, or the program that loaded the library.
struct ta_libc { // in the order of names in ta_libc_resolve
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	size_t (*usable)(void *);
};
extern struct ta_libc ta_libc;
void ta_libc_resolve(void);
void ta_libc_mark(void);
// Whether p, which is not a block of this heap, belongs to that allocator. These functions then
// take it.
int ta_libc_has(void *p);
void ta_pass_free(void *p);
void *ta_pass_realloc(void *p, size_t n);
size_t ta_pass_usable(void *p);
// Whether the loader allocated p before any malloc could be called.
int ta_loader_has(void *p);

_Noreturn void ta_misuse(const char *fn, void *p, unsigned why, size_t size);

#endif
