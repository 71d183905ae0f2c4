// A plugin that the program loads for itself alone, and that looks for functions.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int puts(const char *s) { return printf("%s\n", s); }
void plugin_own(void) {}
void cuda_like(void) {}
void *plugin_next(const char *name)
{
	void *volatile f = dlsym(RTLD_NEXT, name);
	return f;
}
void *plugin_all(const char *name)
{
	void *volatile f = dlsym(RTLD_DEFAULT, name);
	return f;
}
