// Boot: what the first call into the library does, and the constructor.
#define _GNU_SOURCE
#include <errno.h>
#include <elf.h>
#include "boot.h"
#include "boot_walk.h"
#include "libc_malloc.h"
#include "libc_symbol.h"
#include "exports.h"

// The numbers of tracers attached to each probe (boot_probes_amd64.S).
extern const char ta_tracers[];

// The environment of the process: libc's environ or, in the loader before libc has set that, the
// vector behind the arguments on the first stack.
static char **environment(void)
{
	extern char **environ;
	extern void *__libc_stack_end;
	if (environ != NULL)
		return environ;
	uintptr_t *argc = __libc_stack_end;
	return (char **)(argc + 1 + *argc + 1);
}

// Whether the environment has a variable of the library. Without one, boot needs no table of words.
HOT static int has_settings(void)
{
	for (char **e = environment(); *e != NULL; e++)
		if ((*e)[0] == 'T' && (*e)[1] == 'A' && (*e)[2] == '_')
			return 1;
	return 0;
}

HOT static void watch(void)
{
	ta_fork_watch();
	ta_exit_watch();
}

HOT static void boot_once(void)
{
	ta_symbols_resolve();
	ta_derived_resolve();
	ta_cxx_resolve();
	struct ta_boot_args b = {
		.Root = (uintptr_t)ta_root,
		.None = (uintptr_t)&ta_page_none,
		.Envp = (uintptr_t)environment(),
		.Secure = ta_auxv(AT_SECURE),
		.Program = ta_auxv(AT_EXECFN),
		.Token = ta_token(),
		.Random = ta_auxv(AT_RANDOM),
		.File = (uintptr_t)ta_config_open(),
		.Tracers = (uintptr_t)ta_tracers,
		.Bell = (uintptr_t)&ta_waiter_bell,
		.Flags = &ta_flags,
	};
	if (b.Secure || !has_settings())
		b.Envp = 0;
	if (b.Envp != 0 || (long)b.File >= 0)
		ta_tables();
	ta_go_boot((uintptr_t)&b);
	ta_record_pid();
	if (ta_flags.RulesByCaller || ta_flags.Profiled)
		ta_walk_prepare();
	if (ta_flags.RulesByCaller)
		ta_rules_begin();
	ta_libc_mark();
	ta_thread_init();
	if (ta_flags.Pass) {
		ta_libc_resolve();
		if (!ta_flags.Disabled)
			watch();
		__atomic_store_n(&ta_mode, TA_PASS, __ATOMIC_RELEASE);
		return;
	}
	watch();
	ta_thread_key();
	if (ta_flags.Reports || ta_flags.Runtime || ta_flags.RulesByThread)
		ta_fork_mark();
	__atomic_store_n(&ta_mode, TA_ACTIVE, __ATOMIC_RELEASE);
}

// Boots on the first call. In a preloaded process the loader makes that call, long before there is
// a second thread. In a process that loaded the library by dlopen the constructor makes it. So no
// other thread can race with it.
HOT void ta_boot(void)
{
	static int begun;
	if (begun)
		return;
	begun = 1;
	int saved = errno;
	boot_once();
	errno = saved;
}

// Whether the program's malloc is not the library's: the library was loaded by dlopen, or the
// program has a malloc of its own.
HOT static int malloc_is_foreign(void)
{
	extern void *malloc(size_t);
	static const char name[] HOT_DATA = "malloc";
	return ta_symbol_first(name) != (void *)malloc;
}

// Runs before Go's constructor.
__attribute__((constructor(101))) static void begin(void)
{
	if (ta_mode == TA_UNBOOTED)
		ta_guest = malloc_is_foreign();
	ta_boot();
	ta_runtime_check();
}
