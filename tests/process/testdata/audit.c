// An auditor (rtld-audit(7)) that only looks on.
#define _GNU_SOURCE
#include <link.h>

unsigned la_version(unsigned version) { return version; }

unsigned la_objopen(struct link_map *m, Lmid_t ns, uintptr_t *cookie)
{
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(
	Elf64_Sym *sym, unsigned i, uintptr_t *from, uintptr_t *to, unsigned *flags, const char *name)
{
	return sym->st_value;
}
