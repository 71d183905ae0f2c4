// huge SEED SLACK [as|data MIB]: one thread allocates, resizes and frees blocks that are mappings
// of their own while the kernel may refuse: so that freed ones are cut, gathered, grown, moved and
// cached with several parts. After each step it looks at the contents of the block and at the page
// map (which blocks are known), and after a refusal, and now and then, at the accounts: what is
// live, and by how much the process has more addresses than the library counts as mapped, at most
// SLACK KiB more than at the beginning. A refusal must be NULL with ENOMEM and leave the old block
// as it was.
//
// With "as" or "data" the address space, or the private writable part of it, may grow by so many
// MiB once some blocks are cached. The latter is what the kernel counts, too, where it does not
// overcommit.
//
// At the end every block is freed. "end REFUSALS RSS VMSIZE", in KiB, and the library's report are
// printed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "tieralloc.h"

#define MIB   (1024 * 1024ul)
#define SLICE (64 * 1024ul)
#define LEAF  (1ul << 32) // what a leaf of the page map is for

enum { SLOTS = 8, OPS = 60, MOST = 120, KNOWN = 4096, SECONDS = 50 };

struct block {
	char *p;
	size_t n;
	uint64_t id;
};

static struct block slot[SLOTS];
static void *known[KNOWN];                // addresses that were blocks
static int refusals, knowns, steps, told; // told: refusals when the accounts were seen last
static uint64_t ids, chance;
static size_t live;      // bytes
static ta_stats first;   // at the beginning
static long slack, more; // KiB that were not counted as mapped then, and that may come
static long mine;        // KiB that the program itself has mapped

static int (*get_stats)(ta_stats *);
static int (*tier_of)(const void *);

static _Noreturn void wrong(const char *what, struct block *b, long a, long c)
{
	dprintf(2, "huge: %s: block %p of %zu bytes; %ld, %ld\n", what, (void *)b->p, b->n, a, c);
	abort();
}

static uint64_t below(uint64_t n)
{
	uint64_t z = chance += 0x9e3779b97f4a7c15u; // splitmix64
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % n;
}

// A number of KiB from /proc/self/status, read without a call of malloc.
static long status(const char *what)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	char *at = strstr(text, what);
	return at == NULL ? -1 : atol(at + strlen(what));
}

// Words that are looked at: one here and there, and the last.
static size_t next(size_t i, size_t n)
{
	size_t after = i + 8 + 256 * 1024;
	return after < n - 8 || i == n - 8 ? after : n - 8;
}

static uint64_t mark(uint64_t id, size_t i) { return (id + i) * 0x9e3779b97f4a7c15u; }

static void fill(struct block *b)
{
	b->id = ++ids;
	for (size_t i = 0; i < b->n; i = next(i, b->n))
		memcpy(b->p + i, &(uint64_t){mark(b->id, i)}, 8);
}

// The first n bytes are as they were filled.
static void intact(struct block *b, size_t n, const char *when)
{
	uint64_t word;
	for (size_t i = 0; i < b->n && i + 8 <= n; i = next(i, b->n))
		if (memcpy(&word, b->p + i, 8), word != mark(b->id, i))
			wrong(when, b, (long)i, (long)n);
}

// The accounts of the moment. A report that gets no memory says nothing.
static void account(const char *when)
{
	ta_stats s = {.size = sizeof s};
	size_t bytes = 0;
	uint64_t blocks = 0;
	for (int i = 0; i < SLOTS; i++)
		if (slot[i].p != NULL) {
			if (tier_of(slot[i].p) < 0)
				wrong("not a block", &slot[i], i, 0);
			// of a mapping, which is whole slices, the bytes before the block count, too
			size_t n = malloc_usable_size(slot[i].p), whole = n + (uintptr_t)slot[i].p % 4096;
			bytes += whole % SLICE == 0 ? whole : n;
			blocks++;
		}
	if (told == refusals && steps++ % 8 != 0 || get_stats(&s) != 0)
		return;
	told = refusals;
	struct block all = {.n = s.bytes_mapped};
	if (first.size == 0)
		first = s;
	if (s.blocks_live != first.blocks_live + blocks || s.bytes_live != first.bytes_live + bytes)
		wrong("live by the accounts", &all, (long)s.blocks_live, (long)s.bytes_live);
	if (s.bytes_live > s.bytes_committed || s.bytes_committed > s.bytes_mapped)
		wrong("live, committed and mapped", &all, (long)s.bytes_live, (long)s.bytes_committed);
	long not_counted = status("VmSize:") - mine - (long)(s.bytes_mapped / 1024);
	if (slack == 0)
		slack = not_counted;
	if (not_counted > slack + more)
		wrong(when, &all, slack, not_counted);
}

static int refused(const void *p)
{
	if (p != NULL)
		return 0;
	if (errno != ENOMEM)
		wrong("NULL without ENOMEM", &(struct block){0}, errno, 0);
	refusals++;
	return 1;
}

static void settle(struct block *b)
{
	if (knowns < KNOWN)
		known[knowns++] = b->p;
	live += b->n;
	fill(b);
}

static void make(struct block *b, size_t n)
{
	errno = 0;
	if (!refused(b->p = below(8) == 0 ? calloc(1, n) : malloc(n))) {
		b->n = n;
		settle(b);
	}
	account("not counted as mapped after malloc");
}

static void drop(struct block *b)
{
	if (b->p == NULL)
		return;
	intact(b, b->n, "before free");
	live -= b->n;
	errno = 0;
	free(b->p);
	if (errno != 0)
		wrong("free changed errno", b, errno, 0);
	b->p = NULL;
	account("not counted as mapped after free");
}

static void resize(struct block *b, size_t n)
{
	if (b->p == NULL)
		return;
	errno = 0;
	char *p = realloc(b->p, n);
	if (refused(p)) {
		intact(b, b->n, "after a realloc that failed");
	} else {
		live -= b->n;
		b->p = p;
		intact(b, n < b->n ? n : b->n, "after realloc");
		b->n = n;
		settle(b);
	}
	account("not counted as mapped after realloc");
}

static void drop_all(void)
{
	for (int i = 0; i < SLOTS; i++)
		drop(&slot[i]);
}

// The library gets no addresses from a range, where that is free. Returns whether it was.
static int plug(char *from, char *to)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	if (mmap(from, (size_t)(to - from), PROT_NONE, how, -1, 0) != from)
		return 0;
	mine += (to - from) / 1024;
	return 1;
}

static void unplug(int plugged, char *from, char *to)
{
	if (plugged) {
		munmap(from, (size_t)(to - from));
		mine -= (to - from) / 1024;
	}
}

// A block of what two had, which lies across the end of a leaf of the page map: its second part
// begins where there is no leaf. What can become of it is up to the size it is next gathered to.
static void gather(size_t next_size)
{
	char *top = mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(top, 64 * MIB);
	top += 64 * MIB;
	char *end = (char *)(((uintptr_t)top & ~(LEAF - 1)) - LEAF);
	char *from = end - 24 * MIB, *to = end + 16 * MIB;
	int around = plug(from, to), above = plug(to, top);
	make(&slot[0], 20 * MIB);
	make(&slot[1], 6 * MIB);
	make(&slot[2], 15 * MIB);
	make(&slot[3], 6 * MIB);
	drop(&slot[0]);
	drop(&slot[2]);
	unplug(around, from, to);
	make(&slot[0], 33 * MIB);
	drop(&slot[0]);
	make(&slot[0], next_size);
	resize(&slot[0], next_size + 9 * MIB);
	unplug(above, to, top);
	make(&slot[2], 14 * MIB);
	resize(&slot[0], next_size + 20 * MIB);
	resize(&slot[0], 18 * MIB);
	resize(&slot[0], 31 * MIB);
	drop_all();
}

static size_t size(void)
{
	size_t n = below(4) == 0 ? 300 * 1024 + below(3 * MIB) :
							   5 * MIB + below(24) * MIB + below(2) * 12345;
	return live + n > MOST * MIB ? 5 * MIB : n;
}

static void operate(struct block *b)
{
	if (b->p == NULL)
		make(b, size());
	else if (below(3) == 0)
		drop(b);
	else
		resize(b, below(2) ? size() : b->n + b->n / 4 + 1);
}

static void limit(const char *kind, size_t mib)
{
	int as = strcmp(kind, "as") == 0;
	struct rlimit l;
	getrlimit(as ? RLIMIT_AS : RLIMIT_DATA, &l);
	l.rlim_cur = (mib == 0 ? l.rlim_max :
							 (size_t)status(as ? "VmSize:" : "VmData:") * 1024 + mib * MIB);
	setrlimit(as ? RLIMIT_AS : RLIMIT_DATA, &l);
}

int main(int argc, char **argv)
{
	static char json[400000];
	alarm(SECONDS);
	size_t (*report)(char *, size_t) = (size_t(*)(char *, size_t))dlsym(
		RTLD_DEFAULT, "ta_stats_json");
	get_stats = (int (*)(ta_stats *))dlsym(RTLD_DEFAULT, "ta_get_stats");
	tier_of = (int (*)(const void *))dlsym(RTLD_DEFAULT, "ta_tier_of");
	if (argc < 3 || report == NULL || get_stats == NULL || tier_of == NULL ||
		write(1, "main\n", 5) != 5)
		return dprintf(2, "usage: huge SEED SLACK [as|data MIB], with the library\n"), 2;
	chance = strtoull(argv[1], NULL, 0) * 0xd1342543de82ef95u;
	more = atol(argv[2]);
	account("at first");
	if (first.size == 0)
		return 3;
	gather(50 * MIB);
	gather(36 * MIB);
	if (argc > 4)
		limit(argv[3], strtoul(argv[4], NULL, 0));
	for (int i = 0; i < OPS; i++)
		operate(&slot[below(SLOTS)]);
	drop_all();
	if (argc > 4)
		limit(argv[3], 0);
	malloc_trim(0);
	told = -1;
	account("not counted as mapped at the end");
	for (int i = 0; i < knowns; i++)
		if (tier_of(known[i]) >= 0)
			wrong("known when all are freed", &(struct block){.p = known[i]}, i, 0);
	size_t n = report(json, sizeof json);
	dprintf(1, "end %d %ld %ld\n", refusals, status("RssAnon:"), status("VmSize:"));
	if (n == 0 || n >= sizeof json)
		return 3;
	return write(1, json, n) == (ssize_t)n ? 0 : 2;
}
