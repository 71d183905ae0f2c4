// A program that has nothing to do with CUDA.
#include "common.h"

// Searches that fail, as a program that looks for CUDA before it uses it does.
static void search(void)
{
	static const char *const names[] = {
		"cuMemAlloc_v2", "cuInit", "cudaMalloc", "cu", "c", "", "curl_easy_init", "no_such"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		void *handles[] = {
			RTLD_DEFAULT, RTLD_NEXT, dlopen(NULL, RTLD_LAZY), dlopen("libc.so.6", RTLD_LAZY)};
		for (unsigned j = 0; j < sizeof handles / sizeof *handles; j++) {
			dlerror();
			void *f = dlsym(handles[j], names[i]);
			const char *why = dlerror();
			const char *text = why != NULL ? strstr(why, "undefined symbol") : NULL;
			printf("%s by %u: %s, %s\n", names[i], j, f != NULL ? "found" : "none",
				text != NULL ? text : "no error");
		}
	}
	printf("puts in %s\n", where(dlsym(RTLD_DEFAULT, "puts")));
}

// RTLD_NEXT and RTLD_DEFAULT are resolved for the caller: the program, or a plugin with
// libraries of its own.
static void caller(void)
{
	void *lib = dlopen("./plugin.so", RTLD_LAZY | RTLD_LOCAL);
	CHECK(lib != NULL, "%s", dlerror());
	void *(*next)(const char *) = (void *(*)(const char *))dlsym(lib, "plugin_next");
	void *(*all)(const char *) = (void *(*)(const char *))dlsym(lib, "plugin_all");
	printf("next puts in %s, own in %s\n", where(next("puts")), where(dlsym(lib, "puts")));
	printf("plugin_own for the plugin: %s, for the program: %s\n", where(all("plugin_own")),
		where(dlsym(RTLD_DEFAULT, "plugin_own")));
	printf("cuda_like for the plugin: %s, for the program: %s\n", where(all("cuda_like")),
		where(dlsym(RTLD_DEFAULT, "cuda_like")));
}

// Prints the libraries that are loaded.
static void maps(void)
{
	char line[4096], last[4096] = "";
	FILE *f = fopen("/proc/self/maps", "r");
	dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		char *path = strchr(line, '/');
		if (path != NULL && strstr(path, ".so") != NULL && strstr(path, "libtieralloc") == NULL &&
			strcmp(path, last) != 0)
			printf("%s", strcpy(last, path));
	}
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {{"search", search}, {"caller", caller}, {"maps", maps}};
	RUN(tests);
}
