// A library whose constructor, destructor and thread-local data allocate.
#include "common.h"

static char *word;
static __thread char big[20000]; // too large for static TLS: the loader allocates it

__attribute__((constructor)) static void load(void) { word = strdup("made by "); }
__attribute__((destructor)) static void unload(void) { free(word); }

char *plugin_work(const char *name)
{
	big[sizeof big - 1] = 1;
	char *s = malloc(strlen(word) + strlen(name) + 1);
	return strcat(strcpy(s, word), name);
}
