// grow: realloc near a limit of the address space, which a block may come to nearly all of. What
// cannot be had leaves block and address space as they were.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB (1024 * 1024ul)

static long mapped(void) // KiB
{
	char text[100] = "";
	int fd = open("/proc/self/statm", O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		abort();
	close(fd);
	return atol(text) * 4;
}

static _Noreturn void fail(const char *what, long a, long b)
{
	dprintf(2, "grow: %s: %ld, %ld\n", what, a, b);
	abort();
}

static void fill(uint64_t *p, size_t bytes)
{
	for (size_t i = 0; i < bytes / 8; i += 512)
		p[i] = i * 0x9e3779b97f4a7c15u;
}

static void intact(const uint64_t *p, size_t bytes)
{
	for (size_t i = 0; i < bytes / 8; i += 512)
		if (p[i] != i * 0x9e3779b97f4a7c15u)
			fail("contents", (long)i, (long)bytes);
}

// A block of so many MiB, which was filled with the first of them, becomes another.
static char *grown(char *p, size_t have, size_t want)
{
	char *q = realloc(p, want * MIB);
	if (q == NULL)
		fail("realloc", (long)have, (long)want);
	intact((uint64_t *)q, have * MIB);
	q[want * MIB - 1] = 1;
	return q;
}

static char *refused(char *p, size_t have, size_t want)
{
	long before = mapped();
	errno = 0;
	if (realloc(p, want * MIB) != NULL || errno != ENOMEM)
		fail("a realloc beyond the limit", (long)have, (long)want);
	intact((uint64_t *)p, have * MIB);
	if (mapped() > before + 1024)
		fail("KiB mapped before and after a realloc that was refused", before, mapped());
	return p;
}

int main(void)
{
	struct rlimit limit;
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = 2100 * MIB;
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		return 2;
	long before = mapped();
	for (int round = 0; round < 3; round++) {
		char *p = malloc(32 * MIB);
		if (p == NULL)
			return 3;
		fill((uint64_t *)p, 32 * MIB);
		p = refused(p, 32, 3000);
		p = grown(p, 32, 900); // there is room for both
		char *in_the_way = malloc(100 * MIB);
		p = grown(p, 32, 1200); // from here on there is not
		p = grown(p, 32, 1600);
		p = refused(p, 32, 2000);
		free(in_the_way);
		p = grown(p, 32, 2030);
		p = refused(p, 32, 2098);
		p = grown(p, 32, 64);
		p = grown(p, 32, 2040);
		free(p);
		p = malloc(100 * MIB);
		if (p == NULL)
			return 4;
		free(p);
		malloc_trim(0);
	}
	if (mapped() > before + 8 * 1024)
		fail("KiB mapped before and after", before, mapped());
	return 0;
}
