// storm SEED THREADS OPS LIVES FORK: THREADS lanes of random operations, OPS in all,
// on blocks whose every byte is checked. Lanes hand each other blocks to free, which
// counts as an operation but is no call. A lane is run by LIVES threads, one after the
// other. Every FORK ms of processor time, if that is not 0, lane 0 forks, and the child goes on
// allocating for a while.
//
// At the end every block is freed, and the calls made are printed as one line of
// JSON, for comparison with the library's statistics.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "storm.h"

enum {
	LANES = 64,
	SLOTS = 192,      // blocks of a lane
	BOXES = 64,       // blocks between lanes
	CHILD_OPS = 1000, // five for each slot
	CHILD_SECONDS = 60,
};

struct runner {
	struct lane lane;
	struct block slot[SLOTS];
	unsigned lives;
	pthread_t before, last;
	sem_t done;
};

struct box {
	_Atomic int taken;
	struct block block;
};

static struct runner runners[LANES];
static struct box boxes[BOXES];
static unsigned threads, lives;
static uint64_t ops_per_life, forks, fork_every, fork_due;
static pthread_key_t late;

// Processor time: on a busy machine a storm forks no more often than on one at rest.
static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

// Exchanges a block, or none, for what is in a box. A box that another lane has
// its hand in is left alone.
static void trade(struct lane *l, struct block *b)
{
	struct box *x = &boxes[storm_below(l, BOXES)];
	if (atomic_exchange_explicit(&x->taken, 1, memory_order_acquire))
		return;
	struct block got = x->block;
	x->block = *b;
	atomic_store_explicit(&x->taken, 0, memory_order_release);
	*b = got;
}

static void operate(struct runner *r, int alone)
{
	struct lane *l = &r->lane;
	struct block *b = &r->slot[storm_below(l, SLOTS)];
	uint64_t what = storm_below(l, 16);
	l->ops++;
	if (what < 4 && !alone)
		trade(l, b);
	else if (b->p == NULL)
		*b = alone ? block_make_small(l) : block_make(l);
	else if (what < 8 && !alone)
		block_resize(l, b);
	else
		block_free(l, b);
}

static void free_all(struct runner *r)
{
	for (int i = 0; i < SLOTS; i++)
		if (r->slot[i].p != NULL)
			block_free(&r->lane, &r->slot[i]);
}

// What a thread of a child does: a lane of its own.
static void *child_thread(void *of)
{
	struct runner *r = calloc(1, sizeof *r);
	r->lane = ((struct runner *)of)->lane;
	r->lane.random ^= 0xc0ffee;
	for (int i = 0; i < CHILD_OPS; i++)
		operate(r, 1);
	free_all(r);
	free(r);
	return NULL;
}

// Waits for a child and demands that it ended well.
static void expect_good(struct runner *r, pid_t pid, const char *who)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			storm_fail(&r->lane, "waitpid: %s", strerror(errno));
	if (status != 0)
		storm_fail(&r->lane, "the %s %d ended with wait status %#x", who, (int)pid, status);
}

// A child reaches its own lane's blocks alone: the others were in the hands of
// threads that are gone. Some of these were made by other lanes all the same.
static void child_works(struct runner *r)
{
	alarm(CHILD_SECONDS); // a lock left behind would make it wait for ever
	for (int i = 0; i < CHILD_OPS; i++)
		operate(r, 1);
	for (int i = 0; i < SLOTS; i++)
		if (r->slot[i].p != NULL)
			block_check(&r->lane, &r->slot[i], "in a child");
}

static _Noreturn void grandchild(struct runner *r)
{
	child_works(r);
	free_all(r);
	_exit(0);
}

static _Noreturn void child(struct runner *r)
{
	child_works(r);
	pthread_t t;
	if (pthread_create(&t, NULL, child_thread, r) != 0)
		storm_fail(&r->lane, "pthread_create in a child: %s", strerror(errno));
	pid_t pid = fork(); // beside the thread
	if (pid == 0)
		grandchild(r);
	if (pid < 0)
		storm_fail(&r->lane, "fork in a child: %s", strerror(errno));
	expect_good(r, pid, "grandchild");
	pthread_join(t, NULL);
	free_all(r);
	_exit(0);
}

static void maybe_fork(struct runner *r, uint64_t done)
{
	uint64_t now = now_ms();
	if (now < fork_due && (forks > 0 || done < ops_per_life / 2)) // a fast machine forks once, too
		return;
	pid_t pid = fork();
	if (pid == 0)
		child(r);
	if (pid < 0)
		storm_fail(&r->lane, "fork: %s", strerror(errno));
	expect_good(r, pid, "child");
	forks++;
	fork_due = now_ms() + fork_every;
}

// Runs after the library's own destructor, when the thread has no heap any more.
static void last_words(void *p)
{
	free(p);
	free(malloc(100));
}

static void *live(void *arg)
{
	struct runner *r = arg;
	if (r->lives > 0)
		pthread_join(r->before, NULL);
	pthread_setspecific(late, malloc(50));
	for (uint64_t i = 0; i < ops_per_life; i++) {
		operate(r, 0);
		if (fork_every != 0 && r->lane.number == 0 && i % 64 == 0)
			maybe_fork(r, i);
	}
	r->before = pthread_self();
	if (++r->lives == lives) {
		r->last = pthread_self();
		sem_post(&r->done);
		return NULL;
	}
	pthread_t next;
	int e = pthread_create(&next, NULL, live, r);
	if (e != 0)
		storm_fail(&r->lane, "pthread_create: %s", strerror(e));
	return NULL;
}

static void start(unsigned i)
{
	struct runner *r = &runners[i];
	r->lane.number = i;
	r->lane.random = storm_seed * 0xd1342543de82ef95u + i;
	sem_init(&r->done, 0, 0);
	pthread_t t;
	int e = pthread_create(&t, NULL, live, r);
	if (e != 0)
		storm_fail(&r->lane, "pthread_create: %s", strerror(e));
}

static void print_calls(void)
{
	uint64_t sum[sizeof(struct calls) / 8] = {0}, ops = 0;
	for (unsigned i = 0; i < threads; i++) {
		uint64_t *one = (uint64_t *)&runners[i].lane.calls;
		for (size_t k = 0; k < sizeof sum / 8; k++)
			sum[k] += one[k];
		ops += runners[i].lane.ops;
	}
	struct calls c;
	memcpy(&c, sum, sizeof c);
	char text[500];
	int n = snprintf(text, sizeof text,
		"{\"ops\": %lu, \"forks\": %lu, \"calls\": {\"malloc\": %lu, \"calloc\": %lu, \"realloc\": %lu, "
		"\"memalign\": %lu, \"aligned_alloc\": %lu, \"posix_memalign\": %lu, "
		"\"malloc_usable_size\": %lu, \"free\": %lu}}\n",
		ops, forks, c.malloc, c.calloc, c.realloc, c.memalign, c.aligned_alloc, c.posix_memalign,
		c.usable, c.free);
	if (write(1, text, n) != n)
		_exit(2);
}

int main(int argc, char **argv)
{
	if (argc != 6 || (threads = atoi(argv[2])) < 1 || threads > LANES ||
		(lives = atoi(argv[4])) < 1) {
		fprintf(stderr, "usage: storm SEED THREADS OPS LIVES FORK\n");
		return 2;
	}
	storm_seed = strtoull(argv[1], NULL, 0);
	ops_per_life = strtoull(argv[3], NULL, 0) / threads / lives;
	fork_every = atoi(argv[5]);
	fork_due = now_ms() + fork_every / 2;
	pthread_key_create(&late, last_words);
	for (unsigned i = 0; i < threads; i++)
		start(i);
	for (unsigned i = 0; i < threads; i++) {
		while (sem_wait(&runners[i].done) != 0)
			continue;
		pthread_join(runners[i].last, NULL);
	}
	struct runner *r = &runners[0];
	for (int i = 0; i < BOXES; i++)
		if (boxes[i].block.p != NULL)
			block_free(&r->lane, &boxes[i].block);
	for (unsigned i = 0; i < threads; i++)
		free_all(&runners[i]);
	print_calls();
	return 0;
}
