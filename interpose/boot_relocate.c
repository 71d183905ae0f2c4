// Makes the relocations that the loader leaves: internal/postlink has taken them from its tables,
// because few processes need them.
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include "boot.h"
#include "libc_symbol.h"
#include "syscall.h"

// internal/postlink fills this in. table is the address of the relocations that the loader has not
// made: first own relocations for the data plane's tables of words, then count for all else in Go's
// data, and named ones for functions of libc. start is Go's constructor. All are zero in a library
// that internal/postlink has not edited. The object is in boot_gate_amd64.S, so that the compiler
// cannot assume its contents.
extern const struct {
	uint64_t table, own, count, named, start;
} ta_deferred __attribute__((visibility("hidden")));

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

// Sets the protection of the part that the loader made read-only after relocation.
HOT static void protect_relro(uintptr_t base, int prot)
{
	const ElfW(Phdr) *ph = (const ElfW(Phdr) *)(base + __ehdr_start.e_phoff);
	for (int i = 0; i < __ehdr_start.e_phnum; i++) {
		if (ph[i].p_type != PT_GNU_RELRO)
			continue;
		uintptr_t from = (base + ph[i].p_vaddr) & ~(uintptr_t)4095;
		uintptr_t to = (base + ph[i].p_vaddr + ph[i].p_memsz) & ~(uintptr_t)4095;
		ta_sys4(SYS_mprotect, from, to - from, prot, 0);
	}
}

HOT static const ElfW(Rela) * deferred(uint64_t number)
{
	return (const ElfW(Rela) *)((uintptr_t)&__ehdr_start + ta_deferred.table) + number;
}

// Makes count of the deferred relocations, beginning with number first.
HOT static void relocate(uint64_t first, uint64_t count)
{
	uintptr_t base = (uintptr_t)&__ehdr_start;
	for (const ElfW(Rela) *r = deferred(first), *end = r + count; r < end; r++)
		*(uintptr_t *)(base + r->r_offset) = base + (uintptr_t)r->r_addend;
}

static int find(uintptr_t base)
{
	struct ta_symbols own = ta_symbols_of(base, _DYNAMIC);
	const ElfW(Rela) *r = deferred(ta_deferred.own + ta_deferred.count);
	for (const ElfW(Rela) *end = r + ta_deferred.named; r < end; r++) {
		const ElfW(Sym) *y = &own.all[ELF64_R_SYM(r->r_info)];
		void *f = ta_symbol_first(own.names + y->st_name);
		if (f == NULL && ELF64_ST_BIND(y->st_info) != STB_WEAK)
			return 0;
		*(void **)(base + r->r_offset) = f;
	}
	return 1;
}

uintptr_t ta_runtime_relocate(void)
{
	uintptr_t base = (uintptr_t)&__ehdr_start;
	protect_relro(base, PROT_READ | PROT_WRITE);
	int found = find(base);
	if (found)
		relocate(ta_deferred.own, ta_deferred.count);
	protect_relro(base, PROT_READ);
	return found ? base + ta_deferred.start : 0;
}

static int tables_made;

// Settings and the report need them. Two threads may do it at the same time, because they store the
// same values.
HOT void ta_tables(void)
{
	if (__atomic_load_n(&tables_made, __ATOMIC_ACQUIRE))
		return;
	relocate(0, ta_deferred.own);
	__atomic_store_n(&tables_made, 1, __ATOMIC_RELEASE);
}
