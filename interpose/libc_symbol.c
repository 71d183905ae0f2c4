#define _GNU_SOURCE
#include <elf.h>
#include <string.h>
#include "attribute.h"
#include "libc_symbol.h"
#include "syscall.h"

// Until they are resolved, for the little that is copied before: with a static address each would
// be a relocation in every process.
HOT static void *copy(void *to, const void *from, size_t n)
{
	void *result = to;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	return result;
}

HOT static void *fill(void *to, int byte, size_t n)
{
	void *result = to;
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
	return result;
}

struct ta_own ta_own;
struct ta_next ta_next_table;

// Calls that the compiler makes by these names, here and in C of cgo, do not bind to another
// library.
HOT void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	return LIKELY(ta_own.memcpy != NULL) ? ta_own.memcpy(to, from, n) : copy(to, from, n);
}

HOT void *memset(void *to, int byte, size_t n)
{
	return LIKELY(ta_own.memset != NULL) ? ta_own.memset(to, byte, n) : fill(to, byte, n);
}

// The objects of a program are listed in the order in which symbols are searched: the program,
// preloaded libraries, and what they need. These are never unloaded, so the list up to the last of
// them does not change. Objects that dlopen loads come behind.
static struct link_map *head, *us;
// as far as is known: where we were loaded by dlopen, libc or the loader behind it
static struct link_map *last;
// where RTLD_NEXT begins: behind us, or with the program if dlopen loaded us behind libc
static struct link_map *after;
static struct ta_symbols libc_symbols;

const struct ta_symbols *ta_libc_symbols(void) { return &libc_symbols; }

HOT static int is_libc(const struct ta_symbols *s)
{
	static const char name[] HOT_DATA = "libc.so.6";
	for (size_t i = 0; s->soname != NULL && s->soname[i] == name[i]; i++)
		if (name[i] == 0)
			return 1;
	return 0;
}

// Finds this library and libc in one namespace of the loader (dlmopen creates more of them).
// Returns 0 if they are not there.
HOT static int found_in(struct link_map *list)
{
	us = last = after = NULL;
	head = list;
	for (struct link_map *m = list; m != NULL; m = m->l_next) {
		struct ta_symbols s = ta_symbols_of(m->l_addr, m->l_ld);
		if (m->l_ld == _DYNAMIC) {
			us = m;
		} else if (after == NULL && is_libc(&s)) {
			last = m;
			libc_symbols = s;
			after = us != NULL ? us->l_next : list;
		} else if (after != NULL && (after != list || m->l_addr == _r_debug.r_ldbase)) {
			last = m;
		}
	}
	return us != NULL && after != NULL;
}

// A statically linked program that loaded the library by dlopen has no such list. There only the
// functions of libc are known.
static int look_for_libc(struct dl_phdr_info *o, size_t size, void *unused)
{
	for (int i = 0; i < o->dlpi_phnum; i++) {
		if (o->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		struct ta_symbols s = ta_symbols_of(
			o->dlpi_addr, (const ElfW(Dyn) *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr));
		if (is_libc(&s))
			libc_symbols = s;
	}
	return libc_symbols.all != NULL;
}

HOT static int find_objects(void)
{
	const int namespaces = 2; // r_version from which on r_next is there
	if (libc_symbols.all != NULL || found_in(_r_debug.r_map))
		return 1;
	struct r_debug_extended *r = (struct r_debug_extended *)&_r_debug;
	while (r->base.r_version >= namespaces && (r = r->r_next) != NULL)
		if (found_in(r->base.r_map))
			return 1;
	us = head = last = after = NULL;
	return dl_iterate_phdr(look_for_libc, NULL);
}

HOT static void *first_from(struct link_map *m, const struct link_map *skip, const char *name)
{
	for (; m != NULL; m = m != last ? m->l_next : NULL) {
		struct ta_symbols s = ta_symbols_of(m->l_addr, m->l_ld);
		void *f = m != skip ? ta_symbol(&s, name) : NULL;
		if (f != NULL)
			return f;
	}
	return head == NULL ? ta_symbol(&libc_symbols, name) : NULL;
}

HOT void *ta_symbol_next(const char *name) { return first_from(after, us, name); }

// libc's handle of an object is its link_map.
int ta_symbols_ours(const void *handle) { return us != NULL && handle == us; }

HOT int ta_symbols_in_front(void) { return after != head; }

int ta_symbol_of_program(const char *name)
{
	if (head == NULL || !ta_symbols_in_front())
		return 0;
	struct ta_symbols s = ta_symbols_of(head->l_addr, head->l_ld);
	return ta_symbol(&s, name) != NULL;
}

HOT void *ta_symbol_first(const char *name)
{
	return find_objects() ? first_from(head, NULL, name) : NULL;
}

// Fills the empty places of a table with the functions that the object has.
HOT static void fill_in(
	void **table, const ta_symbol_name *names, size_t n, const struct ta_symbols *s)
{
	for (size_t i = 0; i < n; i++)
		if (table[i] == NULL)
			table[i] = ta_symbol(s, names[i]);
}

// The same with the functions of the objects from m on, without this library, up to end.
HOT static void fill_from(struct link_map *m, const struct link_map *end, void **table,
	const ta_symbol_name *names, size_t n)
{
	for (; m != end; m = m->l_next) {
		struct ta_symbols s = ta_symbols_of(m->l_addr, m->l_ld);
		if (m != us)
			fill_in(table, names, n, &s);
	}
}

// The end of the objects of the program.
HOT static struct link_map *end(void) { return last != NULL ? last->l_next : NULL; }

HOT void ta_symbols_next(void *table, const ta_symbol_name *names, size_t n)
{
	fill_from(after, end(), table, names, n);
	if (head == NULL)
		fill_in(table, names, n, &libc_symbols);
}

HOT void ta_symbols_others(void *table, const ta_symbol_name *names, size_t n)
{
	fill_from(head, end(), table, names, n);
	if (head == NULL)
		fill_in(table, names, n, &libc_symbols);
}

HOT void ta_symbols_before(void *table, const ta_symbol_name *names, size_t n)
{
	if (ta_symbols_in_front())
		fill_from(head, us, table, names, n);
}

HOT static void resolve_own(void)
{
	static const ta_symbol_name own_names[] HOT_DATA = {"memcpy", "memset", "pthread_key_create",
		"pthread_key_delete", "pthread_setspecific", "__register_atfork", "getauxval"};
	enum { N = sizeof own_names / sizeof *own_names };
	_Static_assert(sizeof ta_own == N * sizeof(void *), "one name each");
	struct ta_own own = {0};
	fill_in((void **)&own, own_names, N, &libc_symbols);
	ta_own = own;
}

HOT void ta_symbols_own(void *table, const ta_symbol_name *names, size_t n)
{
	ta_symbols_resolve();
	fill_in(table, names, n, &libc_symbols);
}

// Two threads may fill it in at the same time, because they store the same values.
HOT const struct ta_next *ta_next(void)
{
	static const ta_symbol_name names[] HOT_DATA = {
		"dlopen", "dlmopen", "dlclose", "dlsym", "prctl", "pthread_setname_np"};
	enum { N = sizeof names / sizeof *names };
	_Static_assert(sizeof ta_next_table == N * sizeof(void *), "one name each");
	static int known;
	if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
		ta_symbols_resolve();
		ta_symbols_next(&ta_next_table, names, N);
		fill_in((void **)&ta_next_table, names, N, &libc_symbols);
		__atomic_store_n(&known, 1, __ATOMIC_RELEASE);
	}
	return &ta_next_table;
}

static int (*vdso_clock)(int, int64_t time[2]);

HOT uint64_t ta_clock(int clock)
{
	int64_t time[2] = {0, 0};
	if (UNLIKELY(vdso_clock == NULL || vdso_clock(clock, time) != 0))
		ta_sys4(SYS_clock_gettime, (uintptr_t)clock, (uintptr_t)time, 0, 0);
	return (uint64_t)time[0] * 1000000000u + (uint64_t)time[1];
}

HOT static void resolve_clock(void)
{
	static const char name[] HOT_DATA = "__vdso_clock_gettime";
	const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)ta_auxv(AT_SYSINFO_EHDR);
	if (e == NULL)
		return;
	const ElfW(Phdr) *ph = (const ElfW(Phdr) *)((uintptr_t)e + e->e_phoff);
	const ElfW(Dyn) *dynamic = NULL;
	uintptr_t base = (uintptr_t)e;
	for (int i = 0; i < e->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD)
			base = (uintptr_t)e + ph[i].p_offset - ph[i].p_vaddr;
		else if (ph[i].p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)((uintptr_t)e + ph[i].p_offset);
	}
	struct ta_symbols s = ta_symbols_of(base, dynamic);
	vdso_clock = (int (*)(int, int64_t[2]))ta_symbol(&s, name);
}

// libc keeps the vector that the loader passed. It cannot be found on the stack again, because the
// loader of a set-user-ID program, and unsetenv, move the pointers in front of it.
HOT uintptr_t ta_auxv(uintptr_t type) { return ta_own.getauxval(type); }

HOT void ta_symbols_resolve(void)
{
	if (LIKELY(ta_own.getauxval != NULL))
		return;
	if (!find_objects()) {
		ta_say("tieralloc: the program's libc.so.6 was not found\n");
		for (;;)
			ta_sys4(SYS_exit_group, 127, 0, 0, 0);
	}
	resolve_own();
	resolve_clock();
}
