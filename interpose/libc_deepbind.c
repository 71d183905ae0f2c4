// RTLD_DEEPBIND: a library that is opened with it finds libc's malloc before the library's, while
// libc allocates for it (strdup, getline) with the library's. So before the first such library is
// opened, this file redirects libc's dynamic symbols of the malloc family. They then lead where the
// search of the program leads: to our functions, or to a preloaded library in front that wraps
// them. All look-ups by the loader and dlsym then find these. All other symbols bind as the caller
// asked. A library with a malloc of its own keeps it.
#define _GNU_SOURCE
#include <sys/mman.h>
#include "boot.h"
#include "libc_malloc.h"
#include "libc_symbol.h"
#include "process_lock.h"
#include "syscall.h"

static int lock;
static int redirected;

// The protection of the mapping that contains the symbols of libc.
static int protection(const struct ta_symbols *libc)
{
	const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)libc->base;
	const ElfW(Phdr) *ph = (const ElfW(Phdr) *)(libc->base + e->e_phoff);
	uintptr_t at = (uintptr_t)libc->all - libc->base;
	for (int i = 0; i < e->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && at >= ph[i].p_vaddr && at < ph[i].p_vaddr + ph[i].p_memsz)
			return (ph[i].p_flags & PF_R ? PROT_READ : 0) |
				(ph[i].p_flags & PF_W ? PROT_WRITE : 0) | (ph[i].p_flags & PF_X ? PROT_EXEC : 0);
	return PROT_READ;
}

static int protect(const struct ta_symbols *libc, int prot)
{
	uintptr_t from = (uintptr_t)libc->all & ~(uintptr_t)4095;
	uintptr_t to = (uintptr_t)(libc->all + ta_symbols_end(libc));
	return ta_sys4(SYS_mprotect, from, (to - from + 4095) & ~(uintptr_t)4095, prot, 0) == 0;
}

// Redirects the symbols of libc with the name, in each version, to the function at to.
static void lead(const struct ta_symbols *libc, const char *name, uintptr_t to)
{
	for (uint32_t i = 0; (i = ta_symbol_find(libc, name, i)) != 0;) {
		ElfW(Sym) *y = (ElfW(Sym) *)&libc->all[i];
		if (ELF64_ST_TYPE(y->st_info) == STT_FUNC)
			__atomic_store_n(&y->st_value, to - libc->base, __ATOMIC_RELEASE);
	}
}

static int redirect(void)
{
	static const char family[][24] = {"malloc", "free", "calloc", "realloc", "reallocarray",
		"memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc", "cfree",
		"malloc_usable_size", "free_sized", "free_aligned_sized", "malloc_trim", "mallopt",
		"mallinfo", "mallinfo2", "malloc_info", "malloc_stats", "__libc_malloc", "__libc_free",
		"__libc_calloc", "__libc_realloc", "__libc_memalign", "__libc_valloc", "__libc_pvalloc"};
	const struct ta_symbols *libc = ta_libc_symbols();
	int prot = protection(libc);
	ta_libc_resolve(); // libc's own are not found any more
	if (!protect(libc, prot | PROT_WRITE))
		return 0;
	for (size_t i = 0; i < sizeof family / sizeof *family; i++)
		lead(libc, family[i], (uintptr_t)ta_symbol_first(family[i]));
	protect(libc, prot);
	return 1;
}

// Called before a library is opened with RTLD_DEEPBIND. Returns 0 if the kernel does not allow
// writing to libc's symbols; then the library must be opened without the flag.
int ta_deepbind(void)
{
	if (ta_mode != TA_ACTIVE || !ta_symbols_in_front())
		return 1; // blocks are libc's, or the program's
	if (__atomic_load_n(&redirected, __ATOMIC_ACQUIRE))
		return 1;
	ta_process_lock(&lock, TA_LOCK_DEEPBIND);
	if (!redirected)
		__atomic_store_n(&redirected, redirect(), __ATOMIC_RELEASE);
	ta_process_unlock(&lock, TA_LOCK_DEEPBIND);
	return redirected;
}
