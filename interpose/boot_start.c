// Boot: the first call, and the constructor.
#define _GNU_SOURCE
#include <errno.h>
#include <elf.h>
#include "boot.h"
#include "libc_malloc.h"
#include "libc_symbol.h"
#include "exports.h"

// The environment as the process got it: libc's environ, or, in the loader before
// libc has set that, the vector above the arguments on the first stack.
static char **environment(void)
{
	extern char **environ;
	extern void *__libc_stack_end;
	if (environ != NULL)
		return environ;
	uintptr_t *argc = __libc_stack_end;
	return (char **)(argc + 1 + *argc + 1);
}

// Whether a variable of the library is set. Without one, no table of words is needed.
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
		.Flags = &ta_flags,
	};
	if (b.Secure || !has_settings())
		b.Envp = 0;
	if (b.Envp != 0 || (long)b.File >= 0)
		ta_tables();
	ta_go_boot((uintptr_t)&b);
	ta_record_pid();
	ta_rules_begin();
	ta_libc_mark();
	ta_libc_resolve();
	ta_thread_init();
	if (ta_flags.Pass) {
		if (!ta_flags.Disabled)
			watch();
		__atomic_store_n(&ta_mode, TA_PASS, __ATOMIC_RELEASE);
		return;
	}
	watch();
	ta_thread_key();
	ta_fork_mark();
	__atomic_store_n(&ta_mode, TA_ACTIVE, __ATOMIC_RELEASE);
}

// The first call boots. In a preloaded process that is the loader's own, long
// before there is a second thread; in one that loaded us by dlopen it is our
// constructor. So there is nobody to race with.
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

// Whether the program's malloc is another's: then we were loaded by dlopen, or the
// program brings its own.
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
	if (ta_flags.Runtime || !ta_go_deferred())
		ta_signals_save();
}
