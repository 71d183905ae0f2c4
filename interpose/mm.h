// How package share is asked.
#ifndef TA_MM_H
#define TA_MM_H
#include <errno.h>
#include "heap.h"
#include "life.h"
#include "tag.h"
#include "tieralloc.h"

typedef struct ta_share_call ta_share_call;

static inline ta_share_call ta_share_about(uint64_t op, ta_mm *m, uint64_t instance)
{
	return (ta_share_call){.Op = op, .Token = ta_token(), .Manager = (uint64_t)m, .Instance = instance};
}

// Answers as the functions of tieralloc.h do: 0, 1 for what is to be warned of, or -1 with
// errno.
static inline int ta_share_ask(ta_share_call *c)
{
	uintptr_t answer = tag_share((uintptr_t)c);
	if (answer <= TA_SHARE_WARNED)
		return (int)answer;
	return errno = (int)answer, -1;
}

// Replaces TA_MM_ASK by what the manager's device has free; -1 with errno.
int ta_mm_free_of(ta_mm *m, size_t *free);

#endif
