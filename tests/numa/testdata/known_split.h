/* The case of known.c that splits a block between two tiers. */
#include <fcntl.h>

/* Writes a report that counts each page to a file. */
static void exact(const char *path)
{
	static char text[1 << 20];
	size_t n = ta_stats_json_with(text, sizeof text, TA_STATS_EXACT_NODES);
	int fd = open(path, O_CREAT | O_WRONLY, 0600); /* stdio would allocate */
	MUST(fd >= 0 && n > 0 && n < sizeof text && write(fd, text, n) == (ssize_t)n && close(fd) == 0);
}

static long step = PAGE; /* so far apart are the pages of a split block that are touched */

/* Writes to the pages of a block of so many MiB; looks whether they still have that. */
static void stamp(char *p, long size)
{
	for (long at = 0; at < size * MIB; at += step)
		*(long *)(p + at) = at + 1;
}

static int stamped(const char *p, long size)
{
	for (long at = 0; at < size * MIB; at += step)
		if (*(const long *)(p + at) != at + 1)
			return 0;
	return 1;
}

/* Whether each touched page lies where it is said to be, so many MiB in each tier, with its
 * contents; and prints the pages. */
static void laid(const char *what, const char *p, long size, long fast, long normal, long slow)
{
	const long want[3] = {fast * MIB, normal * MIB, slow * MIB};
	long pages[NODES + 1] = {0}, first = 0;
	size_t in[3];
	MUST(ta_tier_of_range(p, 0, size * MIB, in) == 0);
	where(p, size * MIB, pages);
	show(what, pages);
	for (int tier = 2; tier >= 0; tier--) {
		MUST((long)in[tier] == want[tier] && pages[tier] * step == want[tier]);
		first = want[tier] != 0 ? tier : first;
	}
	MUST(ta_tier_of(p) == first && stamped(p, size));
	memset(pages, 0, sizeof pages);
	where(p, want[first], pages);
	MUST(pages[first] * step == want[first]);
}

/* Resizes a block, whose contents stay, and writes to what is new. */
static char *resized(char *p, long from, long to)
{
	p = realloc(p, to * MIB);
	MUST(p && stamped(p, from < to ? from : to));
	stamp(p, to);
	return p;
}

/* split: a block twice as large as the cap of the fast tier, of so many MiB, is resized, moved and
 * freed; the maps are of the moment when it is split. */
static int split(long size)
{
	long cap = size / 2;
	step = size <= 64 ? PAGE : 16 * PAGE;
	char *p = malloc(size * MIB);
	MUST(p);
	stamp(p, size);
	laid("new", p, size, cap, cap, 0);
	maps();
	exact("report.json");
	p = resized(p, size, size + 6);
	laid("grown", p, size + 6, cap, cap + 6, 0);
	p = resized(p, size + 6, cap + 2);
	laid("shrunk", p, cap + 2, cap, 2, 0);
	p = resized(p, cap + 2, cap);
	laid("whole", p, cap, cap, 0, 0);
	p = resized(p, cap, cap - 20);
	p = resized(p, cap - 20, size); /* over the cap, as one block */
	laid("grown over the cap", p, size, cap, cap, 0);
	errno = 0;
	p = ta_move(p, TA_SLOW);
	MUST(p);
	laid("moved", p, size, 0, 0, size);
	free(p);
	p = calloc(size, MIB);
	MUST(p && p[0] == 0 && p[size * MIB - step] == 0);
	free(p);
	p = aligned_alloc(8 * MIB, size * MIB);
	MUST(p && (uintptr_t)p % (8 * MIB) == 0);
	stamp(p, size);
	laid("aligned", p, size, cap, cap, 0);
	MUST(ta_move(p, TA_NORMAL) == p);
	laid("gathered", p, size, 0, size, 0);
	free(p);
	puts("split");
	return 0;
}
