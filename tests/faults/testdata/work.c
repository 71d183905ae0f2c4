// work SEED [HEADROOM]: threads that allocate, resize and free blocks of all sizes while the kernel
// may refuse. Each block has a pattern of its own, looked at before it is resized or freed, so that
// neither damage nor two blocks in one place go unseen. A refusal must be NULL with ENOMEM and
// leave the old block as it was. Twice the main thread forks beside the others.
//
// With HEADROOM the process has so many mappings less than it may have before it begins. A soft
// limit of the address space holds until all is done.
//
// At the end every block is freed. "end REFUSALS RSS VMSIZE", in KiB, and the library's report
// are printed for comparison with a run without refusals.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "crowd.h"

#define MIB (1024 * 1024ul)

enum { SLOTS = 16, LANES = 3, ROUNDS = 2, OPS = 60, BOXES = 8, SECONDS = 50 };

struct block {
	unsigned char *p;
	size_t n;
	uint64_t id;
};

struct lane {
	uint64_t random, ids;
	unsigned number;
	struct block slot[SLOTS];
};

static struct lane lanes[LANES + 1]; // the main thread's last
static struct {
	_Atomic int taken;
	struct block block;
} boxes[BOXES];
static _Atomic int refusals;
static _Atomic long large; // bytes in blocks of a MiB and more

static _Noreturn void wrong(const char *what, struct block *b)
{
	dprintf(
		2, "work: %s: block %p of %zu bytes, pid %d\n", what, (void *)b->p, b->n, (int)getpid());
	abort();
}

static uint64_t below(struct lane *l, uint64_t n)
{
	uint64_t z = l->random += 0x9e3779b97f4a7c15u; // splitmix64
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % n;
}

// Few blocks are large, for realloc copies them, calloc clears them, and the hardened mode copies
// whatever outgrows its slot: one or two page faults for each page. Sizes lie on both sides of
// where realloc begins to move page tables (256 KiB) and of the largest size class (4 MiB).
static size_t size(struct lane *l)
{
	switch (below(l, 20)) {
	case 0:
		return large < (long)(16 * MIB) ? 3 * MIB + below(l, 3 * MIB) : MIB;
	case 1 ... 4:
		return 100000 + below(l, 400000);
	case 5 ... 8:
		return 4000 + below(l, 100000);
	default:
		return 1 + below(l, 2000);
	}
}

// The bytes that are looked at: all of the first page, then one in four pages, beyond the first
// slice of the heap (64 KiB) one in each, and the last. Each page costs a page fault.
static size_t after(size_t i, size_t n)
{
	size_t next = i < 4096 ? i + 1 : i < 65536 ? i + 16381 : i + 65521;
	return next < n || i + 1 == n ? next : n - 1;
}

static unsigned char mark(uint64_t id, size_t i) { return (id + i * 0x9e3779b97f4a7c15u) >> 56; }

static void fill(struct block *b)
{
	for (size_t i = 0; i < b->n; i = after(i, b->n))
		b->p[i] = mark(b->id, i);
}

// The first n bytes are as they were filled.
static void intact(struct block *b, size_t n, const char *when)
{
	for (size_t i = 0; i < n; i = after(i, b->n))
		if (b->p[i] != mark(b->id, i))
			wrong(when, b);
}

static int refused(void *p)
{
	if (p != NULL)
		return 0;
	if (errno != ENOMEM)
		wrong("NULL without ENOMEM", &(struct block){.n = errno});
	refusals++;
	return 1;
}

static void settle(struct lane *l, struct block *b)
{
	b->id = (++l->ids * 0x9e3779b97f4a7c15u & ~63ul) | l->number;
	large += b->n >= MIB ? (long)b->n : 0;
	fill(b);
}

static void make(struct lane *l, struct block *b)
{
	size_t n = size(l), align = 16;
	unsigned char *p = NULL;
	errno = 0;
	switch (below(l, n < MIB ? 5 : 15)) {
	case 0:
		p = calloc(1, n);
		break;
	case 1:
		align = 32u << below(l, 13); // to 128 KiB
		p = memalign(align, n);
		break;
	default:
		p = malloc(n);
	}
	int zeroed = align == 16 && p != NULL && malloc_usable_size(p) < n;
	if (zeroed || (uintptr_t)p % align != 0)
		wrong("too small or not aligned", &(struct block){.p = p, .n = n});
	if (refused(p))
		return;
	b->p = p, b->n = n;
	settle(l, b);
}

static void drop(struct block *b)
{
	if (b->p == NULL)
		return;
	intact(b, b->n, "before free");
	large -= b->n >= MIB ? (long)b->n : 0;
	errno = 0;
	free(b->p);
	if (errno != 0)
		wrong("free changed errno", b);
	b->p = NULL;
}

static void resize_to(struct lane *l, struct block *b, size_t n)
{
	intact(b, b->n, "before realloc");
	errno = 0;
	unsigned char *p = realloc(b->p, n);
	if (refused(p)) {
		intact(b, b->n, "after a realloc that failed");
		return;
	}
	large -= b->n >= MIB ? (long)b->n : 0;
	b->p = p;
	intact(b, n < b->n ? n : b->n, "after realloc");
	b->n = n;
	settle(l, b);
}

static void resize(struct lane *l, struct block *b)
{
	size_t n = below(l, 2) ? size(l) : b->n + b->n / 4 + 1;
	resize_to(l, b, n > 12 * MIB ? 100 : n);
}

// A block that the library may gather from several freed ones, and what can become of it.
static void gather(struct lane *l)
{
	static const size_t sizes[] = {9 * MIB / 2, 5 * MIB, 9 * MIB / 2, 9 * MIB},
						later[] = {10 * MIB, 11 * MIB, 6 * MIB};
	struct block b[4] = {{0}};
	for (int i = 0; i < 4; i++) {
		if (i == 3) {
			drop(&b[0]);
			drop(&b[1]);
		}
		errno = 0;
		if (refused(b[i].p = malloc(b[i].n = sizes[i])))
			continue;
		settle(l, &b[i]);
	}
	for (int i = 0; i < 3 && b[3].p != NULL; i++)
		resize_to(l, &b[3], later[i]);
	for (int i = 0; i < 4; i++)
		drop(&b[i]);
}

// Lets another lane have a block, which frees or resizes it sooner or later.
static void trade(struct lane *l, struct block *b)
{
	unsigned i = below(l, BOXES);
	if (atomic_exchange(&boxes[i].taken, 1))
		return;
	struct block got = boxes[i].block;
	boxes[i].block = *b, *b = got;
	atomic_store(&boxes[i].taken, 0);
}

static void operate(struct lane *l, int alone)
{
	struct block *b = &l->slot[below(l, SLOTS)];
	uint64_t what = below(l, 8);
	if (what < 2 && !alone)
		trade(l, b);
	else if (b->p == NULL)
		make(l, b);
	else if (what < 5)
		resize(l, b);
	else
		drop(b);
}

static void drop_all(struct lane *l)
{
	for (int i = 0; i < SLOTS; i++)
		drop(&l->slot[i]);
}

static void *live(void *arg)
{
	for (int i = 0; i < OPS; i++)
		operate(arg, 0);
	return NULL;
}

// A thread that only frees: it may get no heap to do that with.
static void *free_one(void *arg)
{
	drop(arg);
	return NULL;
}

static void child(struct lane *l)
{
	alarm(SECONDS);
	for (int i = 0; i < OPS / 2; i++)
		operate(l, 1);
	for (int i = 0; i < SLOTS; i++)
		if (l->slot[i].p != NULL)
			intact(&l->slot[i], l->slot[i].n, "in a child");
	drop_all(l);
	_exit(0);
}

static void fork_beside(struct lane *l)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		child(l);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (pid < 0 || status != 0)
		wrong("a child ended badly", &(struct block){.n = (size_t)status});
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

// Nothing is short any more.
static void relax(void)
{
	struct rlimit limit;
	if (crowd != NULL)
		munmap(crowd, MANY);
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_AS, &limit);
}

int main(int argc, char **argv)
{
	static char json[400000];
	pthread_t t[LANES], freer;
	alarm(SECONDS);
	size_t (*report)(char *, size_t) = (size_t(*)(char *, size_t))dlsym(
		RTLD_DEFAULT, "ta_stats_json");
	if (argc < 2 || report == NULL)
		return dprintf(2, "usage: work SEED [HEADROOM], with the library\n"), 2;
	if (write(1, "main\n", 5) != 5)
		return 2;
	for (unsigned i = 0; i <= LANES; i++)
		lanes[i] = (struct lane){
			.number = i, .random = strtoull(argv[1], NULL, 0) * 0xd1342543de82ef95u + i};
	struct lane *mine = &lanes[LANES];
	if (argc > 2)
		fill_up(atoi(argv[2]));
	for (int round = 0; round < ROUNDS; round++) {
		int made = 0, also = 0;
		if (round == 0) // it costs as many page faults as the rest
			gather(mine);
		while (made < LANES && pthread_create(&t[made], NULL, live, &lanes[made]) == 0)
			made++;
		if (mine->slot[0].p != NULL)
			also = pthread_create(&freer, NULL, free_one, &mine->slot[0]) == 0;
		if (also)
			pthread_join(freer, NULL);
		for (int i = 0; i < OPS; i++) {
			operate(mine, 0);
			if (i == OPS / 2)
				fork_beside(mine);
		}
		while (made > 0)
			pthread_join(t[--made], NULL);
		malloc_trim(0);
	}
	for (int i = 0; i < BOXES; i++)
		drop(&boxes[i].block);
	for (int i = 0; i <= LANES; i++)
		drop_all(&lanes[i]);
	relax();
	malloc_trim(0);
	size_t n = report(json, sizeof json);
	dprintf(1, "end %d %ld %ld\n", refusals, status("RssAnon:"), status("VmSize:"));
	if (n == 0 || n >= sizeof json)
		return 3;
	return write(1, json, n) == (ssize_t)n ? 0 : 2;
}
