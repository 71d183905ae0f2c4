// crowd uses up the mappings that the kernel lets a process have.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MANY (200000 * 4096ul)

static char *crowd; // an area that is as many mappings as the kernel lets a process have

// Leaves so many to be had, an even number.
static void fill_up(unsigned headroom)
{
	crowd = mmap(NULL, MANY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t at = 4096; // each page that is apart is two more mappings
	while (crowd != MAP_FAILED && at < MANY - 8192 && mprotect(crowd + at, 4096, PROT_READ) == 0)
		at += 8192;
	if (crowd == MAP_FAILED || errno != ENOMEM)
		dprintf(2, "the mappings are not used up\n"), abort();
	for (; headroom > 1; headroom -= 2)
		mprotect(crowd + (at -= 8192), 4096, PROT_NONE);
}
