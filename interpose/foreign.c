// Memory that is not of this heap: libc's, the host allocator's, the loader's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "heap.h"
#include "tag.h"

struct ta_libc ta_libc;
int ta_disabled;

static uintptr_t first_break;

// Whether the program's malloc is another's: then we were loaded by dlopen.
int ta_malloc_is_foreign(void)
{
	extern void *malloc(size_t);
	return dlsym(RTLD_DEFAULT, "malloc") != (void *)malloc;
}

// Remembers where the heap of libc's own malloc would begin. Preloaded, nobody
// has used that malloc yet.
void ta_libc_mark(void) { first_break = (uintptr_t)sbrk(0); }

void ta_libc_resolve(void)
{
	void *from = ta_guest ? RTLD_DEFAULT : RTLD_NEXT;
	ta_libc.malloc = (void *(*)(size_t))dlsym(from, "malloc");
	ta_libc.calloc = (void *(*)(size_t, size_t))dlsym(from, "calloc");
	ta_libc.realloc = (void *(*)(void *, size_t))dlsym(from, "realloc");
	ta_libc.memalign = (void *(*)(size_t, size_t))dlsym(from, "memalign");
	ta_libc.usable = (size_t(*)(void *))dlsym(from, "malloc_usable_size");
	__atomic_store_n(&ta_libc.free, (void (*)(void *))dlsym(from, "free"), __ATOMIC_RELEASE);
}

// In a program that loaded us by dlopen every foreign block is its allocator's.
// Preloaded, only libc's own heap is known: somebody may have asked libc.so for
// its malloc by name.
int ta_libc_has(void *p)
{
	if (!ta_guest && ((uintptr_t)p < first_break || (uintptr_t)p >= (uintptr_t)sbrk(0)))
		return 0;
	if (__atomic_load_n(&ta_libc.free, __ATOMIC_ACQUIRE) == NULL)
		ta_libc_resolve();
	return ta_libc.free != NULL;
}

static int same_page(uintptr_t a, uintptr_t b) { return a >> 12 == b >> 12; }

// Before it knows our malloc the loader takes memory from the rest of its own data
// pages, then from pages of its own where the link maps lie too.
int ta_loader_has(void *p)
{
	uintptr_t a = (uintptr_t)p, base = getauxval(AT_BASE);
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

_Noreturn void ta_misuse(const char *fn, void *p, unsigned why)
{
	for (;;)
		tag_misuse((uintptr_t)fn, (uintptr_t)p, why);
}
