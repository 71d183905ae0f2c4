// The dynamic symbols of a mapped object, read without the loader: its functions take a lock, and
// another library may interpose them.
#ifndef TA_ELF_SYMBOL_H
#define TA_ELF_SYMBOL_H
#include <link.h>
#include <stdint.h>

struct ta_symbols {
	uintptr_t base;
	const ElfW(Sym) * all;
	const char *names;
	const char *soname; // or NULL
	const uint32_t *hash, *gnu_hash;
	const uint16_t *versions; // or NULL
};

struct ta_symbols ta_symbols_of(uintptr_t base, const ElfW(Dyn) * dynamic);

// Whether two names are the same.
int ta_same(const char *a, const char *b);

// The number of the first function or variable of that name that the object defines after `after`,
// in whatever version; 0 for none. Begin with 0.
uint32_t ta_symbol_find(const struct ta_symbols *s, const char *name, uint32_t after);

// One past the largest number of a symbol that the object defines.
uint32_t ta_symbols_end(const struct ta_symbols *s);

// The function or variable of that name in its default version, or NULL. An indirect function is
// resolved.
void *ta_symbol(const struct ta_symbols *s, const char *name);

#endif
