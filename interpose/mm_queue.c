// ta_mm_queue and ta_mm_allocate_queue: what the instances of a group want, had at once.
#include <string.h>
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

static int place(ta_mm *m, uint64_t id, uint64_t k, void *p)
{
	ta_share_call c = ta_share_about(TA_SHARE_OP_PLACE, m, id);
	c.Count = k;
	c.Address = (uint64_t)p;
	return ta_share_ask(&c);
}

// The k-th array that an instance has queued for, in chunks of so many runs; 0: all at once.
static int wished(ta_mm *m, uint64_t id, uint64_t k, size_t runs, ta_share_call *c)
{
	*c = ta_share_about(TA_SHARE_OP_WISHED, m, id);
	c->Count = k;
	c->Free = runs;
	return ta_share_ask(c);
}

// The n-th instance of the group of another.
static int member(ta_mm *m, uint64_t instance, uint64_t n, ta_share_call *c)
{
	*c = ta_share_about(TA_SHARE_OP_MEMBER, m, instance);
	c->Count = n;
	return ta_share_ask(c);
}

// Allocates what the group wants, or as far as there is room: then -1 with errno.
static int allocate(ta_mm *m, uint64_t instance, size_t runs, void *stream)
{
	ta_share_call of, w;
	for (uint64_t n = 0; member(m, instance, n, &of) == 0; n++)
		for (uint64_t k = 0; k < of.Bytes && wished(m, of.Value, k, runs, &w) == 0; k++) {
			void *p = w.Bytes != 0 ? ta_mm_alloc(m, of.Value, w.Bytes, (int)w.Kind, stream) : NULL;
			if (p == NULL && w.Bytes != 0)
				return -1;
			if (place(m, of.Value, k, p) != 0)
				ta_mm_free(m, p, stream); // it is wanted no more
		}
	return 0;
}

static void give_back(ta_mm *m, uint64_t instance, void *stream)
{
	ta_share_call of, w;
	int saved = errno;
	for (uint64_t n = 0; member(m, instance, n, &of) == 0; n++)
		for (uint64_t k = 0; k < of.Bytes && wished(m, of.Value, k, 0, &w) == 0; k++) {
			ta_mm_free(m, (void *)w.Address, stream);
			place(m, of.Value, k, NULL);
		}
	errno = saved;
}

// Hands an instance its blocks; its queue is over before it is told, so that it may queue again.
static void hand_over(ta_mm *m, const ta_share_call *of, const ta_mm_chunking *chunking)
{
	void *blocks[TA_SHARE_QUEUE_MAX] = {0};
	ta_share_call w, c = ta_share_about(TA_SHARE_OP_DEQUEUE, m, of->Value);
	size_t n = 0;
	while (n < of->Bytes && n < TA_SHARE_QUEUE_MAX && wished(m, of->Value, n, 0, &w) == 0)
		blocks[n++] = (void *)w.Address;
	ta_share_ask(&c);
	if (of->Ready != 0)
		((ta_mm_ready)of->Ready)(of->Value, chunking, blocks, n, (void *)of->Arg);
}

EXPORT int ta_mm_allocate_queue(ta_mm *m, uint64_t instance, size_t free, void *stream, ta_mm_chunking *out)
{
	ta_mm_chunking chunking = {.size = sizeof chunking};
	ta_share_call of, c = ta_share_about(TA_SHARE_OP_PLAN, m, instance);
	if (out != NULL && out->size < sizeof out->size)
		return errno = EINVAL, -1;
	if (ta_mm_free_of(m, &free) != 0)
		return -1;
	c.Free = free;
	c.Value = (uint64_t)&chunking;
	int answer = ta_share_ask(&c);
	if (out != NULL && (answer == 0 || errno != ENOENT))
		memcpy(out, &chunking, out->size < sizeof chunking ? out->size : sizeof chunking);
	if (answer != 0)
		return answer;
	if (allocate(m, instance, chunking.chunks > 1 ? chunking.chunk_length : 0, stream) != 0) {
		give_back(m, instance, stream);
		return -1;
	}
	for (uint64_t n = 0; member(m, instance, n, &of) == 0; n++)
		hand_over(m, &of, &chunking);
	return 0;
}
