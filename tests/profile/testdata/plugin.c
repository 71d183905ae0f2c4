// A library that is loaded and unloaded while others allocate.
#include <stdlib.h>

void plugin_allocate(int n)
{
	for (int i = 0; i < n; i++)
		free(malloc(400 + i));
}
