/* A program that knows the library. Its first argument chooses a case. */
#include "guest.h"
#include "tieralloc.h"
#include <sys/mman.h>
#include <unistd.h>

/* They are the preloaded library's: the program is not linked with it. */
#pragma weak ta_alloc
#pragma weak ta_free
#pragma weak ta_get_stats
#pragma weak ta_move
#pragma weak ta_set_hint
#pragma weak ta_stats_json_with
#pragma weak ta_stats_write
#pragma weak ta_tier_of
#pragma weak ta_tier_of_range

#include "known_split.h"

static const ta_hint hints[] = {TA_HOT, TA_WARM, TA_COLD, TA_PIN_FAST, TA_PREFER_FAST};
static const char *const hint_names[] = {"hot", "warm", "cold", "pin_fast", "prefer_fast"};
static const char *const tier_names[] = {"fast", "normal", "slow"};

/* hints: blocks of each hint, by ta_alloc and by the thread's default, and their tiers. */
static int by_hint(void)
{
	static const long sizes[] = {100, 40000, 700000, 8 * MIB};
	for (int h = 0; h < 5; h++)
		for (int s = 0; s < 4; s++) {
			long pages[NODES + 1] = {0};
			char name[64];
			void *p = ta_alloc(sizes[s], hints[h]);
			ta_hint before = ta_set_hint(hints[h]);
			void *q = malloc(sizes[s]);
			MUST(before == TA_DEFAULT && ta_set_hint(before) == hints[h]);
			MUST(p && q);
			fill(p, sizes[s], h);
			fill(q, sizes[s], h);
			where(p, sizes[s], pages);
			where(q, sizes[s], pages);
			MUST(ta_tier_of(p) == ta_tier_of(q) && ta_tier_of(p) >= 0);
			snprintf(name, sizeof name, "%s %s", hint_names[h], tier_names[ta_tier_of(p)]);
			show(name, pages);
			MUST(holds(p, sizes[s], h) && holds(q, sizes[s], h));
			ta_free(p);
			free(q);
		}
	return 0;
}

/* FAST and NORMAL are both nodes 0 and 1. */
static int sockets;

/* Whether the block lies where it is said to be; the tiers are the nodes 0, 1 and 2. */
static int settled(const void *block, long bytes)
{
	long pages[NODES + 1] = {0};
	size_t in[3];
	MUST(ta_tier_of_range(block, 0, bytes, in) == 0);
	where(block, bytes, pages);
	if (sockets) {
		pages[TA_FAST] += pages[TA_NORMAL];
		in[TA_FAST] += in[TA_NORMAL];
		in[TA_NORMAL] = 0;
	}
	for (int tier = 0; tier < 3; tier++)
		if (pages[tier] * PAGE < (long)in[tier])
			return 0;
	return 1;
}

/* move: blocks of several sizes go round the tiers; after each step every page is asked
 * for. Of a block whose tiers are the nodes 0, 1 and 2 all pages are to be there. */
static int move(void)
{
	static const long sizes[] = {100, 20000, 300000, MIB, 5 * MIB, 33 * MIB};
	static const ta_tier way[] = {
		TA_SLOW, TA_FAST, TA_NORMAL, TA_NORMAL, TA_SLOW, TA_NORMAL, TA_FAST};
	for (int s = 0; s < 6; s++) {
		char *p = ta_alloc(sizes[s], TA_WARM);
		MUST(p);
		fill(p, sizes[s], s);
		for (int k = 0; k < 7; k++) {
			long pages[NODES + 1] = {0}, all = 0;
			char *q = ta_move(p, way[k]);
			MUST(q);
			MUST(q == p || sizes[s] <= 256 << 10);
			MUST(ta_tier_of(q) == (int)way[k]);
			MUST(holds(q, sizes[s], s));
			where(q, sizes[s], pages);
			for (int n = 0; n <= NODES; n++)
				all += pages[n];
			if (pages[way[k]] != all) {
				char name[64];
				snprintf(name, sizeof name, "moved %ld bytes to %s, pages", sizes[s],
					tier_names[way[k]]);
				show(name, pages);
				MUST(!"every page on the tier's node");
			}
			p = q;
		}
		ta_free(p);
	}
	int foreign;
	errno = 0;
	MUST(!ta_move(&foreign, TA_SLOW) && errno == EINVAL);
	char *p = ta_alloc(MIB, TA_WARM);
	errno = 0;
	MUST(!ta_move(p, (ta_tier)3) && errno == EINVAL);
	char *q = ta_alloc(MIB, TA_PIN_FAST);
	MUST(p && q);
	errno = 0;
	MUST(!ta_move(q, TA_SLOW) && errno == EPERM);
	MUST(ta_tier_of(q) == TA_FAST);
	puts("moved");
	return 0;
}

/* neighbours: of many blocks side by side some are moved; the others stay. */
static int neighbours(long bytes)
{
	static void *blocks[30];
	for (int i = 0; i < 30; i++) {
		blocks[i] = ta_alloc(bytes, TA_WARM);
		MUST(blocks[i]);
		fill(blocks[i], bytes, i);
	}
	for (int i = 0; i < 30; i += 3)
		MUST(blocks[i] = ta_move(blocks[i], i % 2 ? TA_FAST : TA_SLOW));
	for (int i = 0; i < 30; i++) {
		MUST(ta_tier_of(blocks[i]) == (i % 3 ? TA_NORMAL : i % 2 ? TA_FAST : TA_SLOW));
		MUST(settled(blocks[i], bytes) && holds(blocks[i], bytes, i));
	}
	puts("in their places");
	return 0;
}

/* pin: PIN_FAST until there is no more, which must be an errno and not the end of the
 * process; all of it used; then the same again. The second argument is the block's size
 * in KiB. */
static int pin(long bytes)
{
	static void *blocks[1 << 16];
	for (int round = 0; round < 2; round++) {
		long n = 0, pages[NODES + 1] = {0};
		for (; n < 1 << 16; n++) {
			errno = 0;
			blocks[n] = ta_alloc(bytes, TA_PIN_FAST);
			if (!blocks[n])
				break;
			fill(blocks[n], bytes, n);
		}
		MUST(n < 1 << 16 && errno == ENOMEM);
		for (long i = 0; i < n; i++) {
			MUST(holds(blocks[i], bytes, i));
			MUST(ta_tier_of(blocks[i]) == TA_FAST);
			where(blocks[i], bytes, pages);
		}
		show("pinned", pages);
		/* Ordinary memory is to be had all the same. */
		char *p = malloc(64 * MIB);
		MUST(p);
		fill(p, 64 * MIB, 1);
		MUST(holds(p, 64 * MIB, 1));
		free(p);
		while (n > 0)
			ta_free(blocks[--n]);
	}
	return 0;
}

/* Prints the bytes of the blocks in each tier, and checks that each lies where it is said
 * to be, with its contents. One that another thread is just moving may take a while. */
static void census(char *const *blocks, long from, long to, long bytes, int patience)
{
	long tiers[3] = {0};
	for (long i = from; i < to; i++) {
		for (int k = 0; k < patience && !settled(blocks[i], bytes); k++)
			usleep(10000);
		MUST(holds(blocks[i], bytes, i));
		MUST(settled(blocks[i], bytes));
		size_t in[3];
		MUST(ta_tier_of_range(blocks[i], 0, bytes, in) == 0);
		for (int tier = 0; tier < 3; tier++)
			tiers[tier] += in[tier];
	}
	printf("bytes %ld %ld %ld\n", tiers[0], tiers[1], tiers[2]);
}

/* The bytes that have left the tiers so far. */
static uint64_t moves(void)
{
	uint64_t n = 0;
	ta_stats s = {.size = sizeof s};
	MUST(ta_get_stats(&s) == 0);
	for (int tier = 0; tier < 3; tier++)
		n += s.tiers[tier].bytes_left;
	return n;
}

/* Lets time pass: half a second with allocations small and large in it, in which the library does
 * what it does by and by; or, idle, ten seconds in which nothing moves any more: on a busy machine
 * its thread may get no turn for two. */
static void wait(int idle)
{
	uint64_t before = moves(), now;
	for (int i = 0; i < (idle ? 500 : 100); i++) {
		usleep(idle ? 20000 : 5000);
		if (idle) {
			if ((now = moves()) != before)
				i = 0;
			before = now;
			continue;
		}
		void *p = malloc(100 << 10), *q = malloc(6 * MIB);
		MUST(p && q);
		free(p);
		free(q);
	}
}

/* demote: so many blocks, in the tier of the default hint, and time to be moved. Then the
 * first half is freed, and there is time to move back. The caller sets caps, and looks at
 * what is in the tiers each time. */
static int demote(long n, long bytes, int idle)
{
	static char *blocks[4096];
	MUST(n <= 4096);
	for (long i = 0; i < n; i++) {
		blocks[i] = malloc(bytes);
		MUST(blocks[i]);
		fill(blocks[i], bytes, i);
	}
	wait(idle);
	census(blocks, 0, n, bytes, idle ? 500 : 0);
	for (long i = 0; i < n / 2; i++)
		free(blocks[i]);
	wait(idle);
	census(blocks, n / 2, n, bytes, idle ? 500 : 0);
	return 0;
}

/* full: blocks of the default hint until there is no more. */
static int full(long bytes)
{
	static char *blocks[4096];
	long n = 0;
	for (; n < 4096; n++) {
		errno = 0;
		blocks[n] = malloc(bytes);
		if (!blocks[n])
			break;
		fill(blocks[n], bytes, n);
	}
	MUST(n < 4096 && errno == ENOMEM);
	census(blocks, 0, n, bytes, 0);
	return 0;
}

/* keep: so many blocks of the default hint, which it still has at the end. It prints on which nodes
 * they are. */
static int keep(long n, long bytes)
{
	long pages[NODES + 1] = {0};
	for (long i = 0; i < n; i++) {
		char *p = malloc(bytes);
		MUST(p);
		fill(p, bytes, i);
		where(p, bytes, pages);
	}
	show("kept", pages);
	return 0;
}

/* home: a large block is on its way down, its first part has arrived, when it is moved to the
 * tier that the rest is in: all of it comes back. */
static int home(void)
{
	char *p = malloc(64 * MIB);
	long pages[NODES + 1] = {0};
	MUST(p);
	fill(p, 64 * MIB, 1);
	for (int i = 0; i < 200 && pages[TA_SLOW] == 0; i++) {
		free(malloc(6 * MIB));
		usleep(1000);
		where(p, 64 * MIB, pages);
	}
	MUST(pages[TA_SLOW] != 0 && pages[TA_NORMAL] != 0 && ta_tier_of(p) == TA_SLOW);
	MUST(ta_move(p, TA_NORMAL) == p);
	MUST(settled(p, 64 * MIB) && holds(p, 64 * MIB, 1));
	puts("at home");
	return 0;
}

/* mappings: every second one of many untouched blocks is to move, in a process that may
 * not have so many mappings. What is said to have moved has, and some are left. */
static int mappings(void)
{
	enum { BLOCKS = 700, BYTES = 300000 };
	static char *blocks[BLOCKS];
	int moved = 0;
	for (int i = 0; i < BLOCKS; i++)
		MUST(blocks[i] = malloc(BYTES));
	for (int i = 0; i < BLOCKS; i += 2)
		moved += ta_move(blocks[i], TA_SLOW) == blocks[i];
	MUST(moved > 50 && moved < BLOCKS / 2);
	for (int i = 0; i < 100; i++)
		MUST(mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	for (int i = 0; i < BLOCKS; i++) {
		fill(blocks[i], BYTES, i);
		MUST(settled(blocks[i], BYTES));
	}
	puts("as far as it goes");
	return 0;
}

/* report: every page of blocks in all tiers is touched; then two reports, of each page and of a
 * sample, and the maps as they are at that moment. */
static int report(void)
{
	static char *blocks[5][20];
	static const long sizes[] = {900, 30000, 256 << 10, 2 * MIB, 5 * MIB};
	for (int h = 0; h < 5; h++)
		for (int i = 0; i < 20; i++) {
			long n = sizes[i % 5];
			blocks[h][i] = ta_alloc(n, hints[h]);
			MUST(blocks[h][i]);
			fill(blocks[h][i], n, i);
		}
	exact("report.json");
	MUST(ta_stats_write("sample.json") == 0);
	maps();
	for (int h = 0; h < 5; h++)
		for (int i = 0; i < 20; i++)
			MUST(holds(blocks[h][i], sizes[i % 5], i));
	return 0;
}

/* names: blocks go round the tiers where FAST and NORMAL are node 0 and SLOW is node 1, maybe under
 * a cap that has no room for one of them twice. */
static int names(void)
{
	enum { BLOCKS = 3 };
	const long bytes = 8 * MIB;
	static char *blocks[BLOCKS];
	static const ta_tier way[] = {TA_FAST, TA_NORMAL, TA_SLOW, TA_FAST, TA_SLOW, TA_NORMAL};
	for (int i = 0; i < BLOCKS; i++) {
		MUST(blocks[i] = ta_alloc(bytes, TA_WARM));
		fill(blocks[i], bytes, i);
	}
	for (int k = 0; k < 6; k++)
		for (int i = 0; i < BLOCKS; i++) {
			long pages[NODES + 1] = {0};
			MUST(ta_move(blocks[i], way[k]) == blocks[i] && ta_tier_of(blocks[i]) == (int)way[k]);
			where(blocks[i], bytes, pages);
			MUST(pages[way[k] == TA_SLOW] * PAGE >= bytes && holds(blocks[i], bytes, i));
		}
	maps();
	puts("under every name");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long a = argc > 2 ? atol(argv[2]) : 0, b = argc > 3 ? atol(argv[3]) : 0;
	if (!strcmp(what, "hints"))
		return by_hint();
	if (!strcmp(what, "move"))
		return move();
	if (!strcmp(what, "neighbours"))
		return neighbours(a << 10);
	if (!strcmp(what, "pin"))
		return pin(a << 10);
	if (!strcmp(what, "demote"))
		return demote(a, b << 10, argc > 4 && !strcmp(argv[4], "idle"));
	if (!strcmp(what, "full")) {
		sockets = argc > 3 && !strcmp(argv[3], "sockets");
		return full(a << 10);
	}
	if (!strcmp(what, "keep"))
		return keep(a, b << 10);
	if (!strcmp(what, "home"))
		return home();
	if (!strcmp(what, "mappings"))
		return mappings();
	if (!strcmp(what, "names"))
		return names();
	if (!strcmp(what, "report"))
		return report();
	if (!strcmp(what, "split"))
		return split(a);
	printf("no case %s\n", what);
	return 2;
}
