// A library with a malloc of its own, for itself.
#include "common.h"

static char room[1 << 16] __attribute__((aligned(16)));
static size_t used;

void *malloc(size_t n)
{
	void *p = room + used;
	used += (n + 15) & ~(size_t)15;
	CHECK(used <= sizeof room);
	return p;
}

void free(void *p) { CHECK((char *)p >= room && (char *)p < room + sizeof room); }

int served(void)
{
	char *p = hide(malloc(100));
	int own = p >= room && p < room + sizeof room;
	free(p);
	return own;
}
