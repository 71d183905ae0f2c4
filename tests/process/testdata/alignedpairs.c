// Pairs of posix_memalign and free: alignment, size and the number of pairs are arguments.
#include <stdlib.h>

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	size_t align = strtoul(argv[1], NULL, 0), n = strtoul(argv[2], NULL, 0);
	for (long i = strtol(argv[3], NULL, 0); i > 0; i--) {
		void *p;
		if (posix_memalign(&p, align, n) != 0 || (size_t)p % align != 0)
			return 1;
		free(p);
	}
	return 0;
}
