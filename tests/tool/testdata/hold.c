// Holds 24 MiB in blocks of 100 bytes, in a block of 32 MiB 20 that it has written to, and as many
// in a mapping of its own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

int main(void)
{
	for (int i = 0; i < 24 * MIB / 112; i++)
		if (memset(malloc(100), 1, 100) == NULL)
			return 1;
	char *huge = malloc(32 * MIB),
		 *own = mmap(NULL, 32 * MIB, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(huge, 1, 20 * MIB);
	mprotect(own, 20 * MIB, PROT_READ | PROT_WRITE);
	memset(own, 1, 20 * MIB);
	puts("ready");
	fflush(stdout);
	pause();
	return huge[0] + own[0];
}
