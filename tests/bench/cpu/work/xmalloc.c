// Producers and consumers, after Lever and Boreham, "malloc() performance in a multithreaded
// Linux environment" (USENIX 2000): half of the threads allocate batches of small blocks, the
// other half frees them.
#include "work.h"

#define BATCH 200
#define QUEUE 128

struct batch {
	struct parcel *item[BATCH];
	struct batch *next; // with STILL: in done
};

static struct batch *queue[QUEUE];
static int head, length, producers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;

struct hand {
	APART int number;
	uint64_t sum;
};

static void push(struct batch *b)
{
	pthread_mutex_lock(&lock);
	while (length == QUEUE)
		pthread_cond_wait(&emptied, &lock);
	queue[(head + length++) % QUEUE] = b;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
}

// The oldest batch, or NULL when there will be no more.
static struct batch *pop(void)
{
	struct batch *b = NULL;
	pthread_mutex_lock(&lock);
	while (length == 0 && producers > 0)
		pthread_cond_wait(&filled, &lock);
	if (length > 0) {
		b = queue[head];
		head = (head + 1) % QUEUE;
		length--;
		pthread_cond_signal(&emptied);
	}
	pthread_mutex_unlock(&lock);
	return b;
}

#ifdef STILL
static struct batch *done; // those to use again
static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER;

static struct batch *reuse(void)
{
	pthread_mutex_lock(&done_lock);
	struct batch *b = done;
	if (b != NULL)
		done = b->next;
	pthread_mutex_unlock(&done_lock);
	return b;
}

static void finished(struct batch *b)
{
	pthread_mutex_lock(&done_lock);
	b->next = done;
	done = b;
	pthread_mutex_unlock(&done_lock);
}
#	define unpack key_of
#else
static struct batch *reuse(void) { return NULL; }
static void finished(struct batch *b) { free(b); }
#endif

static void produce(struct hand *h)
{
	uint64_t random = seed((uint64_t)h->number);
	long batches = scaled(30000);
	for (long i = 0; i < batches; i++) {
		struct batch *old = reuse(), *b = old != NULL ? old : malloc(sizeof *b);
		if (b == NULL)
			die("malloc");
		for (int k = 0; k < BATCH; k++) {
			uint64_t r = next(&random);
			b->item[k] = old != NULL ? fill(b->item[k], b->item[k]->n, r) :
									   pack(skewed(r, 4, 9), r);
		}
		push(b);
	}
	pthread_mutex_lock(&lock);
	producers--;
	pthread_cond_broadcast(&filled);
	pthread_mutex_unlock(&lock);
}

static void *work(void *arg)
{
	struct hand *h = arg;
	struct batch *b;
	if (h->number % 2 == 0) {
		produce(h);
		return NULL;
	}
	while ((b = pop()) != NULL) {
		for (int k = 0; k < BATCH; k++)
			h->sum += unpack(b->item[k]);
		finished(b);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct hand hands[MAX_THREADS];
	uint64_t sum = 0;
	begin(argc, argv);
	int n = threads < 2 ? 2 : threads;
	producers = (n + 1) / 2;
	for (int i = 0; i < n; i++)
		hands[i].number = i;
	crew(n, work, hands, sizeof *hands);
	for (int i = 0; i < n; i++)
		sum += hands[i].sum;
	steady();
	return finish(sum);
}
