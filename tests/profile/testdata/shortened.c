// A block of 12 MB becomes one of 5 MB, and stays.
#include <stdlib.h>
#include <string.h>

static char *volatile kept;

int main(void)
{
	kept = malloc(12000000);
	memset(kept, 1, 12000000);
	kept = realloc(kept, 5000000);
	return kept == NULL;
}
