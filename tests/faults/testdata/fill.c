// fill BYTES: blocks of so many bytes until there is no memory any more. It prints how many bytes
// those are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : 16, sum = 0;
	char text[32];
	for (char *p; (p = malloc(bytes)) != NULL; sum += bytes)
		memset(p, 1, bytes);
	snprintf(text, sizeof text, "%zu\n", sum); // what printf would allocate is not there
	return fputs(text, stderr) < 0;
}
