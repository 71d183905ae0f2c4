/* What the programs of the guest share: contents that can be checked, where pages lie,
 * and copies of what the kernel says of the process's memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB   (1L << 20)
#define PAGE  4096L
#define NODES 8

/* Ends the program with a line when something that must be is not. */
#define MUST(ok) \
	do { \
		if (!(ok)) { \
			printf("line %d: not so: %s (errno %d)\n", __LINE__, #ok, errno); \
			fflush(stdout); \
			_exit(1); \
		} \
	} while (0)

/* Writes n bytes that depend on seed and on where in the block they are. */
static inline void fill(void *p, long n, uint64_t seed)
{
	uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15u;
	for (long i = 0; i < n / 8; i++)
		((uint64_t *)p)[i] = word + i;
	memset((char *)p + n / 8 * 8, (int)word, n % 8);
}

static inline int holds(const void *p, long n, uint64_t seed)
{
	uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15u;
	for (long i = 0; i < n / 8; i++)
		if (((const uint64_t *)p)[i] != word + i)
			return 0;
	for (long i = n / 8 * 8; i < n; i++)
		if (((const char *)p)[i] != (char)word)
			return 0;
	return 1;
}

/* The node of a page, or a negative errno if it is absent. While the kernel moves a page, for
 * compaction, say, move_pages answers ENOENT, as for a page that is absent; only pagemap tells them
 * apart, for guests have no swap. Reading a page waits until it has been moved. */
static inline int node_of(void *page)
{
	static int pagemap = -1;
	if (pagemap < 0)
		MUST((pagemap = open("/proc/self/pagemap", O_RDONLY)) >= 0);
	for (int asked = 0; asked < 1 << 20; asked++) {
		int status;
		uint64_t entry;
		MUST(syscall(SYS_move_pages, 0, 1L, &page, NULL, &status, 0) == 0);
		if (status != -ENOENT)
			return status;
		MUST(pread(pagemap, &entry, 8, (uintptr_t)page / PAGE * 8) == 8);
		if (entry >> 62 == 0) /* neither present nor moved */
			return status;
		(void)*(volatile char *)page;
	}
	MUST(!"a page stays still");
	return -ENOENT;
}

/* Adds up the pages of n bytes at p by node; absent ones are at NODES. */
static inline void where(const void *p, long n, long count[NODES + 1])
{
	uintptr_t at = (uintptr_t)p & ~(uintptr_t)(PAGE - 1), end = (uintptr_t)p + n;
	while (at < end) {
		void *pages[512];
		int status[512];
		long k = 0;
		for (; k < 512 && at < end; k++, at += PAGE)
			pages[k] = (void *)at;
		MUST(syscall(SYS_move_pages, 0, k, pages, NULL, status, 0) == 0);
		for (long i = 0; i < k; i++) {
			int node = status[i] == -ENOENT ? node_of(pages[i]) : status[i];
			count[node >= 0 && node < NODES ? node : NODES]++;
		}
	}
}

/* Prints a line: what, then the pages on each of the first three nodes and the absent. */
static inline void show(const char *what, const long count[NODES + 1])
{
	printf("%s %ld %ld %ld %ld\n", what, count[0], count[1], count[2], count[NODES]);
}

/* Copies a file of /proc without allocating. */
static inline void copy(const char *from, const char *to)
{
	static char buf[1 << 16];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	MUST(in >= 0 && out >= 0);
	for (long n; (n = read(in, buf, sizeof buf)) > 0;)
		MUST(write(out, buf, n) == n);
	close(in);
	close(out);
}

/* Leaves the process's mappings, and where their pages lie, in the current folder. */
static inline void maps(void)
{
	copy("/proc/self/maps", "maps");
	copy("/proc/self/numa_maps", "numa_maps");
}
