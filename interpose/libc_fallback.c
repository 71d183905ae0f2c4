// Memory of other allocators: libc, the allocator of the host, the loader.
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include "boot.h"
#include "libc_malloc.h"
#include "libc_symbol.h"
#include "syscall.h"
#include "exports.h"

struct ta_libc ta_libc;

static uintptr_t first_break;

// Set while the function of another allocator handles a block.
static TLS int passing;

static uintptr_t program_break(void) { return ta_sys4(SYS_brk, 0, 0, 0, 0); }

// Records where the heap of libc's own malloc would begin. In a preloaded process nothing has used
// that malloc yet.
HOT void ta_libc_mark(void) { first_break = program_break(); }

// Finds the functions for blocks of others, which serve all calls while the library passes
// everything on: those of the next library or, if the program has a malloc of its own, those of the
// program. It does so before libc's symbols lead to ours (libc_deepbind.c). Two threads may find
// them at the same time, because they store the same values.
HOT void ta_libc_resolve(void)
{
	static const ta_symbol_name names[] HOT_DATA = {
		"malloc", "free", "calloc", "realloc", "memalign", "malloc_usable_size"};
	enum { N = sizeof names / sizeof *names };
	_Static_assert(sizeof ta_libc == N * sizeof(void *), "one name each");
	static int known;
	if (__atomic_load_n(&known, __ATOMIC_ACQUIRE))
		return;
	(ta_guest ? ta_symbols_others : ta_symbols_next)(&ta_libc, names, N);
	__atomic_store_n(&known, 1, __ATOMIC_RELEASE);
}

// Whether p looks like a block that libc mapped for itself or cut from the heap of
// one of its secondary arenas. Layout: struct malloc_chunk and struct heap_info of
// glibc's malloc.c and arena.c (2.26 and later).
static int libc_chunk(uintptr_t p)
{
	enum { MMAPPED = 2, ARENA = 4, FLAGS = 7 };
	const uintptr_t heap_max = 64u << 20;
	if (p % 16 != 0 || p < 4096 || !ta_readable(p - 16) || !ta_readable(p - 8))
		return 0;
	uintptr_t before = ((uintptr_t *)p)[-2], size = ((uintptr_t *)p)[-1];
	if (size & MMAPPED)
		return (p - 16 - before) % 4096 == 0 && ((size & ~(uintptr_t)FLAGS) + before) % 4096 == 0;
	uintptr_t *heap = (uintptr_t *)(p & ~(heap_max - 1));
	if (!(size & ARENA) || !ta_readable((uintptr_t)heap) || !ta_readable((uintptr_t)(heap + 2)))
		return 0;
	return heap[0] != 0 && heap[2] % 4096 == 0 && heap[2] <= heap_max &&
		p - (uintptr_t)heap < heap[2];
}

// In a program whose malloc is not the library's, every foreign block belongs to that malloc.
// Otherwise only blocks of libc are known: some code may have asked libc.so for malloc by name.
int ta_libc_has(void *p)
{
	uintptr_t a = (uintptr_t)p;
	if (passing) // the host's function is a wrapper that calls the library
		return 0;
	if (!ta_guest && !(a >= first_break && a < program_break()) && !libc_chunk(a))
		return 0;
	ta_libc_resolve();
	return ta_libc.free != NULL;
}

void ta_pass_free(void *p)
{
	passing = 1;
	ta_libc.free(p);
	passing = 0;
}

void *ta_pass_realloc(void *p, size_t n)
{
	passing = 1;
	void *q = ta_libc.realloc(p, n);
	passing = 0;
	return q;
}

size_t ta_pass_usable(void *p)
{
	passing = 1;
	size_t n = ta_libc.usable(p);
	passing = 0;
	return n;
}

static int same_page(uintptr_t a, uintptr_t b) { return a >> 12 == b >> 12; }

// Before the loader knows our malloc it takes memory from the rest of its own data pages, then from
// pages that also hold the link maps.
int ta_loader_has(void *p)
{
	uintptr_t a = (uintptr_t)p, base = ta_auxv(AT_BASE);
	if (base != 0 && a >= base) {
		const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)base;
		const ElfW(Phdr) *ph = (const ElfW(Phdr) *)(base + e->e_phoff);
		for (int i = 0; i < e->e_phnum; i++) {
			uintptr_t end = base + ph[i].p_vaddr + ph[i].p_memsz;
			if (ph[i].p_type == PT_LOAD && a < ((end + 4095) & ~(uintptr_t)4095))
				return 1;
		}
	}
	for (struct link_map *m = _r_debug.r_map; m != NULL; m = m->l_next)
		if (same_page(a, (uintptr_t)m) || same_page(a, (uintptr_t)m->l_name))
			return ta_lookup(m) == NULL;
	return 0;
}

_Noreturn void ta_misuse(const char *fn, void *p, unsigned why, size_t size)
{
	for (;;)
		ta_go_misuse((uintptr_t)fn, (uintptr_t)p, why, size);
}
