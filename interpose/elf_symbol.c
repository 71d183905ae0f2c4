#define _GNU_SOURCE
#include <elf.h>
#include "elf_symbol.h"
#include "heap.h"

HOT struct ta_symbols ta_symbols_of(uintptr_t base, const ElfW(Dyn) * dynamic)
{
	struct ta_symbols s = {.base = base};
	uintptr_t soname = 0;
	for (const ElfW(Dyn) *d = dynamic; d != NULL && d->d_tag != DT_NULL; d++) {
		// The loader has relocated these, except in the kernel's own object.
		const void *at = (const void *)(d->d_un.d_ptr < base ? base + d->d_un.d_ptr :
															   d->d_un.d_ptr);
		if (d->d_tag == DT_SYMTAB)
			s.all = at;
		else if (d->d_tag == DT_STRTAB)
			s.names = at;
		else if (d->d_tag == DT_HASH)
			s.hash = at;
		else if (d->d_tag == DT_GNU_HASH)
			s.gnu_hash = at;
		else if (d->d_tag == DT_VERSYM)
			s.versions = at;
		else if (d->d_tag == DT_SONAME)
			soname = d->d_un.d_val;
	}
	if (soname != 0 && s.names != NULL)
		s.soname = s.names + soname;
	return s;
}

HOT int ta_same(const char *a, const char *b)
{
	for (; *a == *b; a++, b++)
		if (*a == 0)
			return 1;
	return 0;
}

HOT static int is(const struct ta_symbols *s, uint32_t i, const char *name)
{
	const ElfW(Sym) *y = &s->all[i];
	unsigned type = ELF64_ST_TYPE(y->st_info);
	return y->st_shndx != SHN_UNDEF &&
		(type == STT_FUNC || type == STT_OBJECT || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
		ta_same(s->names + y->st_name, name);
}

// The parts of a DT_GNU_HASH table: its layout is in binutils' documentation of --hash-style.
struct gnu_hash {
	uint32_t buckets, first, words, shift;
	const uint64_t *bloom;
	const uint32_t *bucket, *chain; // the chain begins with the symbol `first`
};

HOT static struct gnu_hash gnu_hash_of(const struct ta_symbols *s)
{
	const uint32_t *t = s->gnu_hash;
	struct gnu_hash g = {t[0], t[1], t[2], t[3], (const uint64_t *)(t + 4), NULL, NULL};
	g.bucket = (const uint32_t *)(g.bloom + g.words);
	g.chain = g.bucket + g.buckets;
	return g;
}

// Whether the filter rules the name out.
HOT static int absent(const struct gnu_hash *g, uint32_t h)
{
	if (g->buckets == 0 || g->words == 0)
		return 1;
	uint64_t word = g->bloom[h / 64 & (g->words - 1)];
	return !(word >> h % 64 & word >> (h >> g->shift) % 64 & 1);
}

HOT static uint32_t find_gnu(const struct ta_symbols *s, const char *name, uint32_t after)
{
	struct gnu_hash g = gnu_hash_of(s);
	uint32_t h = 5381;
	for (const unsigned char *c = (const unsigned char *)name; *c != 0; c++)
		h = h * 33 + *c;
	if (absent(&g, h))
		return 0;
	uint32_t i = g.bucket[h % g.buckets];
	if (i < g.first || i == 0)
		return 0;
	for (;; i++) {
		if (i > after && (g.chain[i - g.first] | 1) == (h | 1) && is(s, i, name))
			return i;
		if (g.chain[i - g.first] & 1)
			return 0;
	}
}

HOT uint32_t ta_symbol_find(const struct ta_symbols *s, const char *name, uint32_t after)
{
	if (s->all == NULL || s->names == NULL)
		return 0;
	if (s->gnu_hash != NULL)
		return find_gnu(s, name, after);
	for (uint32_t i = after + 1; s->hash != NULL && i < s->hash[1]; i++)
		if (is(s, i, name))
			return i;
	return 0;
}

uint32_t ta_symbols_end(const struct ta_symbols *s)
{
	if (s->gnu_hash == NULL)
		return s->hash != NULL ? s->hash[1] : 0;
	struct gnu_hash g = gnu_hash_of(s);
	uint32_t last = 0;
	for (uint32_t b = 0; b < g.buckets; b++)
		if (g.bucket[b] > last)
			last = g.bucket[b];
	if (last < g.first || last == 0)
		return 0;
	while (!(g.chain[last - g.first] & 1))
		last++;
	return last + 1;
}

HOT static void *address(const struct ta_symbols *s, uint32_t i)
{
	void *at = (void *)(s->base + s->all[i].st_value);
	if (ELF64_ST_TYPE(s->all[i].st_info) == STT_GNU_IFUNC)
		return ((void *(*)(void))at)();
	return at;
}

HOT void *ta_symbol(const struct ta_symbols *s, const char *name)
{
	const uint16_t hidden = 0x8000; // a version that is not the default
	for (uint32_t i = 0; (i = ta_symbol_find(s, name, i)) != 0;)
		if (s->versions == NULL || !(s->versions[i] & hidden))
			return address(s, i);
	return NULL;
}
