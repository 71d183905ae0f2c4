// What the guests of BenchmarkTiering and BenchmarkAdvise run. Each workload goes on until it is
// killed.
//
// tiering sets ORDER KIB: a hot and a cold set of 112 MiB each, of blocks of so many KiB (0: one
// block for both, 2 MiB of each by turns): 19 of 20 uses are of the hot set. ORDER is hot or cold,
// which is allocated first, turns, or change: turns, and the sets change their roles after 60 s.
// With TIERING_HINTS=1 it tells the library which is which.
//
// tiering gups: random updates of one array, 9 of 10 in a tenth of it.
//
// tiering btree: look-ups in a B-tree of blocks from malloc, 9 of 10 of a tenth of the keys.
//
// tiering mark N: ends a period of testdata/nodeshare.c.
//
// tiering touch NODE: writes 16 MiB that are bound to a node.
//
// tiering leave MIB: takes the memory of node 0 until so much is free there, and 4 MiB that the
// kernel keeps free. It locks the files of the guest, too: they are in memory, on node 0, and
// demotion would make room of them.
//
// tiering interleave PROGRAM [ARGUMENT...]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MIB (1L << 20)
#define MUST(ok) \
	do { \
		if (!(ok)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #ok); \
			exit(1); \
		} \
	} while (0)

static uint64_t state = 88172645463325252u;

static uint64_t below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % n;
}

/* Says that the memory is there. */
static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* Uses 64 words all over a block. */
static void use(char *block, uint64_t bytes)
{
	for (int i = 0; i < 64; i++)
		(*(volatile uint64_t *)(block + below(bytes / 8) * 8))++;
}

/* What follows is for a hint of the library, if it is there and asked for. */
static void hint(int number)
{
	static int (*set)(int);
	if (!set && getenv("TIERING_HINTS"))
		set = (int (*)(int))dlsym(RTLD_DEFAULT, "ta_set_hint");
	if (set)
		set(number);
}

enum { TA_HOT = 1, TA_COLD = 3, SET = 112 };

static char *block_of(uint64_t bytes, int number)
{
	char *block;
	hint(number);
	MUST((block = malloc(bytes)));
	memset(block, 1, bytes);
	return block;
}

__attribute__((noinline, noclone)) static char *hot_block(uint64_t bytes)
{
	return memset(block_of(bytes, TA_HOT), 2, 1);
}

__attribute__((noinline, noclone)) static char *cold_block(uint64_t bytes)
{
	return memset(block_of(bytes, TA_COLD), 2, 1);
}

static void sets(const char *order, uint64_t bytes)
{
	static char *hot[SET * 16], *cold[SET * 16];
	uint64_t n, change = !strcmp(order, "change");
	char *one = bytes ? NULL : block_of(2 * SET * MIB, 0);
	if (!bytes)
		bytes = 2 * MIB;
	n = SET * MIB / bytes;
	for (uint64_t i = 0; i < 2 * n; i++) {
		int first = !strcmp(order, "hot") || !strcmp(order, "cold") ? i < n : i % 2 == 0;
		int is_hot = first == !strcmp(order, "hot");
		uint64_t at = !strcmp(order, "hot") || !strcmp(order, "cold") ? i % n : i / 2;
		(is_hot ? hot : cold)[at] = one ? one + i * bytes :
			is_hot                      ? hot_block(bytes) :
										  cold_block(bytes);
	}
	ready();
	for (time_t begin = time(NULL);;) {
		int swapped = change && time(NULL) - begin > 60;
		for (int i = 0; i < 100; i++)
			use((!below(20) == swapped ? hot : cold)[below(n)], bytes);
	}
}

static void gups(void)
{
	uint64_t words = 192 * MIB / 8, hot = words / 10, *table = malloc(words * 8);
	MUST(table);
	for (uint64_t i = 0; i < words; i++)
		table[i] = i;
	ready();
	for (;;)
		((volatile uint64_t *)table)[below(10) ? words - hot + below(hot) : below(words)]++;
}

enum { KEYS = 15 };

struct node {
	struct node *child[KEYS + 1];
	uint64_t key[KEYS], *value[KEYS];
	int keys, leaf;
};

static struct node *fresh(int leaf)
{
	struct node *n = calloc(1, sizeof *n);
	MUST(n);
	n->leaf = leaf;
	return n;
}

/* Splits the full i-th child of a node that is not full. */
static void split(struct node *n, int i)
{
	enum { HALF = KEYS / 2 };
	struct node *low = n->child[i], *high = fresh(low->leaf);
	high->keys = KEYS - HALF - 1;
	memcpy(high->key, low->key + HALF + 1, high->keys * sizeof *high->key);
	memcpy(high->value, low->value + HALF + 1, high->keys * sizeof *high->value);
	memcpy(high->child, low->child + HALF + 1, (high->keys + 1) * sizeof *high->child);
	low->keys = HALF;
	memmove(n->child + i + 2, n->child + i + 1, (n->keys - i) * sizeof *n->child);
	memmove(n->key + i + 1, n->key + i, (n->keys - i) * sizeof *n->key);
	memmove(n->value + i + 1, n->value + i, (n->keys - i) * sizeof *n->value);
	n->child[i + 1] = high;
	n->key[i] = low->key[HALF];
	n->value[i] = low->value[HALF];
	n->keys++;
}

static int place_of(const struct node *n, uint64_t key)
{
	int i = 0;
	while (i < n->keys && n->key[i] < key)
		i++;
	return i;
}

static struct node *insert(struct node *root, uint64_t key)
{
	if (root->keys == KEYS) {
		struct node *above = fresh(0);
		above->child[0] = root;
		split(above, 0);
		root = above;
	}
	for (struct node *n = root;;) {
		int i = place_of(n, key);
		if (i < n->keys && n->key[i] == key)
			return root;
		if (n->leaf) {
			memmove(n->key + i + 1, n->key + i, (n->keys - i) * sizeof *n->key);
			memmove(n->value + i + 1, n->value + i, (n->keys - i) * sizeof *n->value);
			n->key[i] = key;
			MUST((n->value[i] = malloc(256)));
			memset(n->value[i], 1, 256);
			n->keys++;
			return root;
		}
		if (n->child[i]->keys == KEYS) {
			split(n, i);
			i = place_of(n, key);
			if (i < n->keys && n->key[i] == key)
				return root;
		}
		n = n->child[i];
	}
}

static uint64_t *look_up(const struct node *n, uint64_t key)
{
	for (;;) {
		int i = place_of(n, key);
		if (i < n->keys && n->key[i] == key)
			return n->value[i];
		if (n->leaf)
			return NULL;
		n = n->child[i];
	}
}

static void btree(void)
{
	const uint64_t all = 600000, hot = all / 10;
	struct node *root = fresh(1);
	for (uint64_t i = 0; i < all; i++)
		root = insert(root, i * 0x9e3779b1u % all);
	ready();
	for (;;) {
		uint64_t *value = look_up(root, below(10) ? below(hot) : below(all));
		for (int i = 0; value && i < 32; i++)
			((volatile uint64_t *)value)[i];
	}
}

static void mark(long n)
{
	volatile uint64_t *at = mmap((void *)0x6e6f64650000, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	MUST(at != MAP_FAILED);
	at[n] = 1;
}

static void touch(int node)
{
	enum { BIND = 2 };
	unsigned long set = 1ul << node;
	char *at = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(at != MAP_FAILED && syscall(SYS_mbind, at, 16 * MIB, BIND, &set, 65, 0) == 0);
	for (long i = 0; i < 16 * MIB; i += 8)
		((volatile char *)at)[i] = 1;
}

static int lock_file(const char *path, const struct stat *stat, int type, struct FTW *where)
{
	(void)where;
	if (type == FTW_F && S_ISREG(stat->st_mode) && stat->st_size > 0) {
		int fd = open(path, O_RDONLY);
		char *at = mmap(NULL, stat->st_size, PROT_READ, MAP_SHARED, fd, 0);
		MUST(at != MAP_FAILED && mlock(at, stat->st_size) == 0);
		close(fd);
	}
	return 0;
}

static void leave(long bytes)
{
	enum { BIND = 2 };
	unsigned long set = 1;
	MUST(nftw("/", lock_file, 16, FTW_PHYS | FTW_MOUNT) == 0);
	/* The kernel frees what it was loaded with some seconds after the first program starts. */
	for (int second = 0; second < 8; second++) {
		long kib, taken;
		FILE *f = fopen("/sys/devices/system/node/node0/meminfo", "r");
		MUST(f && fscanf(f, "%*[^\n] Node 0 MemFree: %ld", &kib) == 1);
		fclose(f);
		taken = kib * 1024 - bytes - 4 * MIB;
		if (taken >= MIB) {
			char *at = mmap(
				NULL, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			MUST(at != MAP_FAILED && syscall(SYS_mbind, at, taken, BIND, &set, 65, 0) == 0);
			MUST(mlock(at, taken) == 0);
		}
		sleep(1);
	}
	ready();
	pause();
}

static void interleave(char **program)
{
	enum { INTERLEAVE = 3 };
	unsigned long set = 3;
	MUST(syscall(SYS_set_mempolicy, INTERLEAVE, &set, 65) == 0);
	execv(program[0], program);
	MUST(!"no such program");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "sets") && argc > 3)
		sets(argv[2], atol(argv[3]) << 10);
	else if (!strcmp(what, "gups"))
		gups();
	else if (!strcmp(what, "btree"))
		btree();
	else if (!strcmp(what, "mark") && argc > 2)
		mark(atol(argv[2]));
	else if (!strcmp(what, "touch") && argc > 2)
		touch(atoi(argv[2]));
	else if (!strcmp(what, "leave") && argc > 2)
		leave(atol(argv[2]) * MIB);
	else if (!strcmp(what, "interleave") && argc > 2)
		interleave(argv + 2);
	else
		return 2;
	return 0;
}
