// Pairs of malloc and free: sizes and their number are arguments.
#include <stdlib.h>

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	size_t n = strtoul(argv[1], NULL, 0);
	for (long i = strtol(argv[2], NULL, 0); i > 0; i--) {
		char *volatile p = malloc(n);
		free(p);
	}
	return 0;
}
