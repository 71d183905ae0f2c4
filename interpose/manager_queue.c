// ta_mm_queue and ta_mm_allocate_queue: the requests of a group's instances, allocated together.
#include "cuda_driver.h"
#include "manager.h"

EXPORT int ta_mm_on_ready(ta_mm *m, uint64_t instance, ta_mm_ready ready, void *arg)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_READY, m, instance);
	c.Ready = (uint64_t)ready;
	c.Arg = (uint64_t)arg;
	return ta_manager_ask(&c);
}

EXPORT int ta_mm_queue(
	ta_mm *m, uint64_t instance, const ta_mm_request *requests, size_t n, size_t runs)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_QUEUE, m, instance);
	if (requests == NULL && n != 0)
		return errno = EINVAL, -1;
	c.Requests = (uint64_t)requests;
	c.Count = n;
	c.Runs = runs;
	return ta_manager_ask(&c);
}

static int about_round(uint64_t op, ta_mm *m, uint64_t round, ta_manager_call *c)
{
	*c = ta_manager_about(op, m, 0);
	c->Round = round;
	return ta_manager_ask(c);
}

// The next array of a round that has no block yet, in chunks of so many runs. 0 runs: the whole
// array.
static int wanted(ta_mm *m, uint64_t round, size_t runs, ta_manager_call *c)
{
	*c = ta_manager_about(TA_MANAGER_OP_WANTED, m, 0);
	c->Round = round;
	c->Runs = runs;
	return ta_manager_ask(c);
}

static int place(ta_mm *m, const ta_manager_call *w, void *p)
{
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_PLACE, m, w->Found);
	c.Index = w->Index;
	c.Address = (uint64_t)p;
	return ta_manager_ask(&c);
}

// Allocates the arrays of a round, or as many as there is room for, then returns -1 with errno.
// Skips instances that have left meanwhile.
static int allocate(ta_mm *m, uint64_t round, size_t runs, void *stream)
{
	ta_manager_call w;
	while (wanted(m, round, runs, &w) == 0) {
		void *p = w.Bytes != 0 ? ta_mm_get_block(m, w.Found, w.Bytes, (int)w.Kind, stream, round) :
								 NULL;
		if (p == NULL && w.Bytes != 0 && errno != ENOENT)
			return -1;
		if (place(m, &w, p) != 0)
			ta_mm_free(m, p, stream);
	}
	return 0;
}

static void give_back(ta_mm *m, uint64_t round, void *stream)
{
	ta_manager_call c;
	int saved = errno;
	while (about_round(TA_MANAGER_OP_TAKE_BACK, m, round, &c) == 0)
		ta_mm_free(m, (void *)c.Address, stream);
	errno = saved;
}

static void end_round(ta_mm *m, uint64_t round)
{
	ta_manager_call c;
	int saved = errno;
	about_round(TA_MANAGER_OP_ROUND_OVER, m, round, &c);
	errno = saved;
}

// Allocates the arrays of a round. If memory is refused, tries once more after the device heap has
// returned its cache, then with shorter chunks, down to one run, because the free memory may be in
// pieces. The first step shortens the chunk by 1/64, each further step by twice as much.
static int allocate_shorter(
	ta_mm *m, uint64_t round, size_t runs, ta_mm_chunking *chunking, void *stream)
{
	size_t step = 0;
	ta_manager_call device;
	while (allocate(m, round, chunking->chunks > 1 ? chunking->chunk_length : 0, stream) != 0) {
		size_t length = chunking->chunk_length;
		give_back(m, round, stream);
		if (errno != ENOMEM || (step != 0 && (chunking->chunkable == 0 || length == 1)))
			return end_round(m, round), -1;
		if (ta_mm_device(m, &device) == 0)
			ta_cuda_trim_to((int)device.Device, 0);
		chunking->chunk_length = length > step ? length - step : 1;
		chunking->chunks = (runs - 1) / chunking->chunk_length + 1;
		step = step == 0 ? length / 64 + 1 : step * 2;
	}
	return 0;
}

// Computes the chunking of the queued requests, and begins a round. If they must be chunked or do
// not fit, idle instances are evicted first: those of the group if its budget is short, and all if
// the device's memory is short, unless the program has given the free bytes itself.
static int plan(
	ta_mm *m, uint64_t instance, size_t free, ta_mm_chunking *chunking, ta_manager_call *c)
{
	ta_mm_asked asked[2] = {{0}};
	for (;;) {
		size_t total;
		*c = ta_manager_about(TA_MANAGER_OP_PLAN, m, instance);
		if (ta_mm_free_of(m, free, c, &total) != 0)
			return -1;
		c->Out = (uint64_t)chunking;
		c->Memory = total;
		int answer = ta_manager_ask(c), why = errno;
		int short_of = answer == 0 ? chunking->chunks > 1 :
									 why == ENOTSUP || why == E2BIG || why == ENOSPC;
		int everywhere = chunking->available == c->Free;
		if (!short_of || c->Hopeless != 0 || (everywhere && free != TA_MM_ASK) ||
			ta_mm_ask_idle(m, instance, everywhere, &asked[everywhere]) != 1)
			return errno = why, answer;
		if (answer == 0)
			end_round(m, c->Round);
	}
}

// Passes its blocks to an instance that was not told yet. Its queue ends before the call, so that
// it may queue again in the call. Returns whether there was one.
static int hand_over(ta_mm *m, uint64_t round, const ta_mm_chunking *chunking)
{
	void *blocks[TA_MANAGER_QUEUE_MAX] = {0};
	ta_manager_call c = ta_manager_about(TA_MANAGER_OP_TELL, m, 0);
	c.Round = round;
	c.Out = (uint64_t)blocks;
	if (ta_manager_ask(&c) != 0)
		return 0;
	if (c.Ready != 0)
		((ta_mm_ready)c.Ready)(c.Found, chunking, blocks, c.Count, (void *)c.Arg);
	return 1;
}

EXPORT int ta_mm_allocate_queue(
	ta_mm *m, uint64_t instance, size_t free, void *stream, ta_mm_chunking *out)
{
	ta_mm_chunking chunking = {.size = sizeof chunking};
	ta_manager_call c;
	if (out != NULL && out->size < sizeof out->size)
		return errno = EINVAL, -1;
	int answer = plan(m, instance, free, &chunking, &c);
	if (out != NULL && (answer == 0 || (errno != ENOENT && errno != EBUSY)))
		ta_mm_fill(out, &chunking, sizeof chunking);
	if (answer != 0)
		return answer;
	if (allocate_shorter(m, c.Round, c.Runs, &chunking, stream) != 0)
		return -1;
	if (out != NULL)
		ta_mm_fill(out, &chunking, sizeof chunking);
	while (hand_over(m, c.Round, &chunking))
		;
	return 0;
}
