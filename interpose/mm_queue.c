// ta_mm_queue and ta_mm_allocate_queue: what the instances of a group want, had at once.
#include "cuda_driver.h"
#include "mm.h"

EXPORT int ta_mm_on_ready(ta_mm *m, uint64_t instance, ta_mm_ready ready, void *arg)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_READY, m, instance);
	c.Ready = (uint64_t)ready;
	c.Arg = (uint64_t)arg;
	return ta_share_ask(&c);
}

EXPORT int ta_mm_queue(ta_mm *m, uint64_t instance, const ta_mm_request *requests, size_t n, size_t runs)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_QUEUE, m, instance);
	if (requests == NULL && n != 0)
		return errno = EINVAL, -1;
	c.Address = (uint64_t)requests;
	c.Count = n;
	c.Bytes = runs;
	return ta_share_ask(&c);
}

static int about_round(uint64_t op, ta_mm *m, uint64_t round, ta_share_call *c)
{
	*c = ta_share_about(op, m, 0);
	c->Extra = round;
	return ta_share_ask(c);
}

// The next array of a round that has no block yet, in chunks of so many runs; 0: all at once.
static int wanted(ta_mm *m, uint64_t round, size_t runs, ta_share_call *c)
{
	*c = ta_share_about(TA_SHARE_OP_WANTED, m, 0);
	c->Extra = round;
	c->Free = runs;
	return ta_share_ask(c);
}

static int place(ta_mm *m, const ta_share_call *w, void *p)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_PLACE, m, w->Value);
	c.Count = w->Count;
	c.Address = (uint64_t)p;
	return ta_share_ask(&c);
}

// Allocates what a round is for, or as far as there is room: then -1 with errno. Who has
// left meanwhile wants nothing.
static int allocate(ta_mm *m, uint64_t round, size_t runs, void *stream)
{
	ta_share_call w;
	while (wanted(m, round, runs, &w) == 0) {
		void *p = w.Bytes != 0 ? ta_mm_get_block(m, w.Value, w.Bytes, (int)w.Kind, stream, round) : NULL;
		if (p == NULL && w.Bytes != 0 && errno != ENOENT)
			return -1;
		if (place(m, &w, p) != 0)
			ta_mm_free(m, p, stream);
	}
	return 0;
}

static void give_back(ta_mm *m, uint64_t round, void *stream)
{
	ta_share_call c;
	int saved = errno;
	while (about_round(TA_SHARE_OP_TAKE_BACK, m, round, &c) == 0)
		ta_mm_free(m, (void *)c.Address, stream);
	about_round(TA_SHARE_OP_ROUND_OVER, m, round, &c);
	errno = saved;
}

// Hands one that is not told yet its blocks; its queue is over before it is told, so that it
// may queue again. Whether there was one.
static int hand_over(ta_mm *m, uint64_t round, const ta_mm_chunking *chunking)
{
	void *blocks[TA_SHARE_QUEUE_MAX] = {0};
	ta_share_call c = ta_share_about(TA_SHARE_OP_TELL, m, 0);
	c.Extra = round;
	c.Address = (uint64_t)blocks;
	if (ta_share_ask(&c) != 0)
		return 0;
	if (c.Ready != 0)
		((ta_mm_ready)c.Ready)(c.Value, chunking, blocks, c.Count, (void *)c.Arg);
	return 1;
}

EXPORT int ta_mm_allocate_queue(ta_mm *m, uint64_t instance, size_t free, void *stream, ta_mm_chunking *out)
{
	ta_mm_chunking chunking = {.size = sizeof chunking};
	ta_share_call c = ta_share_about(TA_SHARE_OP_PLAN, m, instance);
	if (out != NULL && out->size < sizeof out->size)
		return errno = EINVAL, -1;
	if (ta_mm_free_of(m, &free) != 0)
		return -1;
	c.Free = free;
	c.Value = (uint64_t)&chunking;
	int answer = ta_share_ask(&c);
	if (out != NULL && (answer == 0 || (errno != ENOENT && errno != EBUSY)))
		ta_mm_fill(out, &chunking, sizeof chunking);
	if (answer != 0)
		return answer;
	if (allocate(m, c.Extra, chunking.chunks > 1 ? chunking.chunk_length : 0, stream) != 0) {
		give_back(m, c.Extra, stream);
		return -1;
	}
	while (hand_over(m, c.Extra, &chunking))
		;
	return 0;
}
