// fill BYTES [LIMIT]: blocks of so many bytes until there is no memory any more. It prints how many
// bytes those are. With LIMIT it first sets the limit of its address space itself.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : 16, sum = 0;
	char text[32];
	if (argc > 2) {
		struct rlimit l = {strtoull(argv[2], NULL, 0), RLIM_INFINITY};
		if (setrlimit(RLIMIT_AS, &l) != 0)
			return 1;
	}
	for (char *p; (p = malloc(bytes)) != NULL; sum += bytes)
		memset(p, 1, bytes);
	snprintf(text, sizeof text, "%zu\n", sum); // what printf would allocate is not there
	return fputs(text, stderr) < 0;
}
