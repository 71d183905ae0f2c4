// Functions of other objects that the library calls. They are found once, without the loader's
// functions: at boot those that every process calls, others when the first call needs them, because
// each search reads pages of libc that a short process would not.
#ifndef TA_LIBC_SYMBOL_H
#define TA_LIBC_SYMBOL_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include "elf_symbol.h"

// A name in a table. The names are arrays, because a pointer to each would be a relocation in every
// process.
typedef char ta_symbol_name[24];

// libc's own functions. malloc, free, boot, exit and fork call no others: a function that another
// library puts in their place may allocate, or need a start-up that has not happened yet.
struct ta_own { // in the order of own_names
	void *(*memcpy)(void *, const void *, size_t);
	void *(*memset)(void *, int, size_t);
	int (*key_create)(pthread_key_t *, void (*)(void *));
	int (*key_delete)(pthread_key_t);
	int (*setspecific)(pthread_key_t, const void *);
	int (*register_atfork)(void (*)(void), void (*)(void), void (*)(void), void *);
	unsigned long (*getauxval)(unsigned long);
};
extern struct ta_own ta_own;

// Fills the empty places of a table of n functions with those of libc that it has.
void ta_symbols_own(void *table, const ta_symbol_name *names, size_t n);

// The clock of the kernel in nanoseconds, read through the vDSO if there is one.
uint64_t ta_clock(int clock);

// The functions that ours of the same names pass on to: those of the next library, as RTLD_NEXT
// finds it.
struct ta_next { // in the order of names in ta_next
	void *(*dlopen)(const char *, int);
	void *(*dlmopen)(long, const char *, int);
	int (*dlclose)(void *);
	void *(*dlsym)(void *, const char *);
	int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
	int (*setname)(pthread_t, const char *);
};
extern struct ta_next ta_next_table;

// Returns the table, which it fills in the first time.
const struct ta_next *ta_next(void);

// Fills in ta_own, the first time: at boot, or before that in a constructor of another object.
void ta_symbols_resolve(void);

// The function of that name in the next library that has it, as RTLD_NEXT finds it, or NULL.
void *ta_symbol_next(const char *name);

// A function of libc that few processes call. Each use searches for it, so that the loader need not
// search for it in every process.
#define TA_RARE(f) ((__typeof__(&(f)))ta_symbol_next(#f))

// The function of that name in the first object of the program that has it, ours included.
void *ta_symbol_first(const char *name);

// Whether the program itself has a function of that name, and is searched before this library.
int ta_symbol_of_program(const char *name);

// Whether a handle of dlopen is this library's.
int ta_symbols_ours(const void *handle);

// Whether the library is searched before libc: preloaded or linked, not loaded by dlopen.
int ta_symbols_in_front(void);

// Fill the empty places of a table of n functions, each object's at once: from the next libraries,
// as ta_symbol_next; from all objects of the program but this library; or from those that are
// searched before this library, which are none where it was loaded by dlopen.
void ta_symbols_next(void *table, const ta_symbol_name *names, size_t n);
void ta_symbols_others(void *table, const ta_symbol_name *names, size_t n);
void ta_symbols_before(void *table, const ta_symbol_name *names, size_t n);

// A variable of the kernel's auxiliary vector, or 0.
uintptr_t ta_auxv(uintptr_t type);

const struct ta_symbols *ta_libc_symbols(void);

#endif
