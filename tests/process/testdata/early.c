// Allocation before main, after main, and in a library that is loaded meanwhile.
#include "common.h"
#include <dlfcn.h>
#include <pthread.h>

static void *before[3];

static void preinit(int argc, char **argv, char **envp)
{
	(void)argc, (void)argv, (void)envp;
	before[0] = calloc(10, 100); // before any constructor, libc's and ours included
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(
	int, char **, char **) = preinit;

__attribute__((constructor(101))) static void ctor(void) { before[1] = malloc(5000); }
__attribute__((constructor)) static void late_ctor(void) { before[2] = realloc(before[0], 100000); }

static void prelude(void)
{
	CHECK(before[1] != NULL && before[2] != NULL && ((char *)before[2])[999] == 0);
	for (int i = 1; i < 3; i++)
		free(before[i]);
}

static void at_end(void)
{
	for (size_t n = 1; n < 10 * MIB; n *= 3)
		free(realloc(malloc(n), n * 2));
	dprintf(1, "handler\n");
}

__attribute__((destructor)) static void dtor(void)
{
	free(strdup("still here"));
	dprintf(1, "destructor\n");
}

static void handlers(void)
{
	atexit(at_end);
	atexit(at_end);
}

static void quick_handler(void) { free(malloc(MIB)), dprintf(1, "quick\n"); }
static void quick(void)
{
	at_quick_exit(quick_handler);
	quick_exit(0);
}

static const char *plugin;

static void use_plugin(void *lib)
{
	CHECK(lib != NULL, "%s", dlerror());
	char *(*work)(const char *) = (char *(*)(const char *))dlsym(lib, "plugin_work");
	CHECK(work != NULL);
	char *s = work("abc");
	CHECK(strcmp(s, "made by abc") == 0, "%s", s);
	free(s);
	CHECK(dlsym(lib, "no_such_name") == NULL && dlerror() != NULL);
	CHECK(dlclose(lib) == 0);
}

static void *loader(void *unused)
{
	for (int i = 0; i < 50; i++) {
		use_plugin(dlopen(plugin, i & 1 ? RTLD_NOW : RTLD_LAZY));
		CHECK(dlopen("/no/such/library.so", RTLD_NOW) == NULL);
		free(strdup(dlerror()));
	}
	return unused;
}

// Threads that load, look up and unload while others do the same.
static void load(void)
{
	plugin = getenv("PLUGIN");
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, loader, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static const struct test tests[] = {
	{"prelude", prelude}, {"handlers", handlers}, {"quick", quick}, {"load", load}};

int main(int argc, char **argv) { RUN(tests); }
