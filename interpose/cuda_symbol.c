// Which function of the CUDA runtime a caller means. The linker has bound the call to the library's
// function. A process may have several runtimes. Some are not found by a search of all loaded
// objects (RTLD_LOCAL), or have changed names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include "cuda_driver.h"
#include "libc_symbol.h"

// The function in an object or in its dependencies; NULL is the program. The handle is closed again
// by libc's own dlclose, because nothing is unloaded.
static void *symbol_in(const char *object, const char *name)
{
	void *lib = dlopen(object, RTLD_NOLOAD | RTLD_LAZY);
	if (lib == NULL)
		return NULL;
	void *f = ta_dlsym(lib, name);
	ta_next()->dlclose(lib);
	return f;
}

void *ta_cuda_symbol_beside(void *address, const char *name)
{
	Dl_info found;
	struct link_map *of = NULL;
	int saved = errno;
	void *f = NULL;
	if (TA_RARE(dladdr1)(address, &found, (void **)&of, RTLD_DL_LINKMAP) != 0 && of != NULL &&
		of->l_name[0] != 0)
		f = symbol_in(of->l_name, name);
	errno = saved;
	return f;
}

static void *start_of(void *address)
{
	Dl_info found;
	return TA_RARE(dladdr)(address, &found) != 0 ? found.dli_fbase : NULL;
}

// Functions that a caller cannot mean: the library's own; and the caller's own, if a search of all
// objects finds that first. Then the caller is in front of the library and means the next function.
struct unmeant {
	void *us, *own;
};

static struct unmeant unmeant_by(void *caller, const char *name)
{
	// RTLD_DEFAULT would begin with this library, because it is linked with -Bsymbolic
	void *first = symbol_in(NULL, name);
	int own = first != NULL && start_of(first) == start_of(caller);
	return (struct unmeant){start_of((void *)ta_cuda_runtime_symbol), own ? first : NULL};
}

static void *meant(void *f, const struct unmeant *except)
{
	return f != NULL && f != except->own && start_of(f) != except->us ? f : NULL;
}

static struct ta_symbols symbols_of(const struct dl_phdr_info *o)
{
	const ElfW(Dyn) *dynamic = NULL;
	for (int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
	return ta_symbols_of(o->dlpi_addr, dynamic);
}

struct search {
	const char *name;
	struct unmeant except;
	char object[PATH_MAX];
};

// Called for each object while the loader's lock on their list is held, so it must not call a
// function of the loader. The runtime's own name is preferred to any other.
static int look(struct dl_phdr_info *o, size_t size, void *arg)
{
	struct search *s = arg;
	struct ta_symbols symbols = symbols_of(o);
	uint32_t i = ta_symbol_find(&symbols, s->name, 0);
	int named = TA_RARE(strstr)(o->dlpi_name, "libcudart") != NULL;
	if (i == 0 || o->dlpi_name[0] == 0 || (void *)o->dlpi_addr == s->except.us ||
		(s->object[0] != 0 && !named))
		return 0;
	size_t n = TA_RARE(strlen)(o->dlpi_name) + 1;
	if ((void *)(o->dlpi_addr + symbols.all[i].st_value) == s->except.own || n > sizeof s->object)
		return 0;
	memcpy(s->object, o->dlpi_name, n);
	return named;
}

// The function in any object. symbol_in opens the object, in case it was still being loaded or is
// unloaded meanwhile.
static NOINLINE void *anywhere(const char *name, const struct unmeant *except)
{
	struct search s = {.name = name, .except = *except};
	dl_iterate_phdr(look, &s);
	return s.object[0] != 0 ? symbol_in(s.object, name) : NULL;
}

// The caller's own runtime comes first. But the return address may be in an object without a
// runtime: the call may be a callback, or a tail call that leaves another object's return address.
void *ta_cuda_runtime_symbol(const char *name, void *caller)
{
	int saved = errno;
	struct unmeant except = unmeant_by(caller, name);
	void *f = meant(ta_cuda_symbol_beside(caller, name), &except);
	if (f == NULL)
		f = meant(ta_dlsym(RTLD_NEXT, name), &except);
	if (f == NULL)
		f = meant(anywhere(name, &except), &except);
	errno = saved;
	return f;
}
