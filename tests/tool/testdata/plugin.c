/* Opens the libraries that its arguments name: "deep" binds one to itself first, "apart" gives it a
 * namespace. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

int main(int argc, char **argv)
{
	void *handle = NULL;
	if (argc == 3 && !strcmp(argv[1], "deep"))
		handle = dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND);
	if (argc == 3 && !strcmp(argv[1], "apart"))
		handle = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW);
	return handle == NULL;
}
