// Which function of the CUDA runtime a caller means. The linker has bound it to ours,
// and a process may have several runtimes, also ones that no search of all that is loaded
// finds (RTLD_LOCAL), or with changed names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include "cuda_driver.h"

// The function in an object and in what it needs; NULL is the program. The object is not kept, and libc's own
// dlclose is called, for nothing has gone.
static void *symbol_in(const char *object, const char *name)
{
	void *lib = dlopen(object, RTLD_NOLOAD | RTLD_LAZY);
	if (lib == NULL)
		return NULL;
	void *f = ta_dlsym(lib, name);
	int (*close)(void *) = (int (*)(void *))ta_libc_symbol("dlclose");
	if (close != NULL)
		close(lib);
	return f;
}

void *ta_cuda_symbol_beside(void *address, const char *name)
{
	Dl_info found;
	struct link_map *of = NULL;
	int saved = errno;
	void *f = NULL;
	if (dladdr1(address, &found, (void **)&of, RTLD_DL_LINKMAP) != 0 && of != NULL && of->l_name[0] != 0)
		f = symbol_in(of->l_name, name);
	errno = saved;
	return f;
}

static void *start_of(void *address)
{
	Dl_info found;
	return dladdr(address, &found) != 0 ? found.dli_fbase : NULL;
}

// What a caller cannot mean: our own function; and its own where that is what a search
// of all finds first. It then stands before us and calls what comes next to it.
struct unmeant {
	void *us, *own;
};

static struct unmeant unmeant_by(void *caller, const char *name)
{
	void *first = symbol_in(NULL, name); // RTLD_DEFAULT would begin with us: we are linked with -Bsymbolic
	int own = first != NULL && start_of(first) == start_of(caller);
	return (struct unmeant){start_of((void *)ta_cuda_runtime_symbol), own ? first : NULL};
}

static void *meant(void *f, const struct unmeant *not)
{
	return f != NULL && f != not->own && start_of(f) != not->us ? f : NULL;
}

// The symbols of an object, as its dynamic section has them.
struct symbols {
	const ElfW(Sym) *all;
	const char *names;
	const uint32_t *hash, *gnu_hash;
};

static struct symbols symbols_of(const struct dl_phdr_info *o)
{
	struct symbols s = {0};
	const ElfW(Dyn) *d = NULL;
	for (int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
	for (; d != NULL && d->d_tag != DT_NULL; d++) {
		// The loader has made addresses of them, but for the kernel's own object.
		const void *at = (const void *)(d->d_un.d_ptr < o->dlpi_addr ? o->dlpi_addr + d->d_un.d_ptr : d->d_un.d_ptr);
		switch (d->d_tag) {
		case DT_SYMTAB:
			s.all = at;
			break;
		case DT_STRTAB:
			s.names = at;
			break;
		case DT_HASH:
			s.hash = at;
			break;
		case DT_GNU_HASH:
			s.gnu_hash = at;
			break;
		}
	}
	return s;
}

static int is(const struct symbols *s, uint32_t i, const char *name)
{
	const ElfW(Sym) *y = &s->all[i];
	return y->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(y->st_info) == STT_FUNC && strcmp(s->names + y->st_name, name) == 0;
}

// The layout of the table: see the gABI's hash table, and DT_GNU_HASH in binutils. Returns
// the symbol's number, 0 for none.
static uint32_t find_gnu(const struct symbols *s, const char *name)
{
	uint32_t buckets = s->gnu_hash[0], first = s->gnu_hash[1], bloom = s->gnu_hash[2], h = 5381;
	const uint32_t *bucket = s->gnu_hash + 4 + bloom * (sizeof(ElfW(Addr)) / sizeof *bucket), *chain = bucket + buckets;
	for (const unsigned char *c = (const unsigned char *)name; *c != 0; c++)
		h = h * 33 + *c;
	uint32_t i = buckets != 0 ? bucket[h % buckets] : 0;
	if (i < first || i == 0)
		return 0;
	for (;; i++) {
		if ((chain[i - first] | 1) == (h | 1) && is(s, i, name))
			return i;
		if (chain[i - first] & 1)
			return 0;
	}
}

static uint32_t find(const struct symbols *s, const char *name)
{
	if (s->all == NULL || s->names == NULL)
		return 0;
	if (s->gnu_hash != NULL)
		return find_gnu(s, name);
	for (uint32_t i = 1; s->hash != NULL && i < s->hash[1]; i++)
		if (is(s, i, name))
			return i;
	return 0;
}

struct search {
	const char *name;
	struct unmeant not;
	char object[PATH_MAX];
};

// Called for each object, with the loader's lock on their list held: no function of the
// loader may be called here. The runtime's own name is better than any other.
static int look(struct dl_phdr_info *o, size_t size, void *arg)
{
	struct search *s = arg;
	struct symbols symbols = symbols_of(o);
	uint32_t i = find(&symbols, s->name);
	int named = strstr(o->dlpi_name, "libcudart") != NULL;
	if (i == 0 || o->dlpi_name[0] == 0 || (void *)o->dlpi_addr == s->not.us || (s->object[0] != 0 && !named))
		return 0;
	if ((void *)(o->dlpi_addr + symbols.all[i].st_value) == s->not.own || strlen(o->dlpi_name) >= sizeof s->object)
		return 0;
	strcpy(s->object, o->dlpi_name);
	return named;
}

// Any object that has the function. It is then opened, in case it was still being loaded,
// or has gone meanwhile.
static NOINLINE void *anywhere(const char *name, const struct unmeant *not)
{
	struct search s = {.name = name, .not = *not};
	dl_iterate_phdr(look, &s);
	return s.object[0] != 0 ? symbol_in(s.object, name) : NULL;
}

// The caller's own runtime comes first. A function may be called by an object that has no
// part in it, though: as a callback, or by a tail call that leaves another's return address.
void *ta_cuda_runtime_symbol(const char *name, void *caller)
{
	int saved = errno;
	struct unmeant not = unmeant_by(caller, name);
	void *f = meant(ta_cuda_symbol_beside(caller, name), &not);
	if (f == NULL)
		f = meant(ta_dlsym(RTLD_NEXT, name), &not);
	if (f == NULL)
		f = meant(anywhere(name, &not), &not);
	errno = saved;
	return f;
}
