// Requests to package manager.
#ifndef TA_MANAGER_H
#define TA_MANAGER_H
#include <errno.h>
#include <string.h>
#include "cuda_abi.h"
#include "heap.h"
#include "boot.h"
#include "exports.h"
#include "tieralloc.h"

typedef struct ta_manager_call ta_manager_call;

static inline ta_manager_call ta_manager_about(uint64_t op, ta_mm *m, uint64_t instance)
{
	return (ta_manager_call){
		.Op = op, .Token = ta_token(), .Manager = (uint64_t)m, .Instance = instance};
}

// Returns what the functions of tieralloc.h return: 0, 1 for a warning, or -1 with errno.
static inline int ta_manager_ask(ta_manager_call *c)
{
	uintptr_t answer = ta_go_manager((uintptr_t)c);
	if (answer <= TA_MANAGER_WARNED)
		return (int)answer;
	return errno = (int)answer, -1;
}

// Fills in a structure of the program. Its first word is the number of bytes that the program
// knows.
static inline void ta_mm_fill(void *out, const void *from, size_t n)
{
	size_t size = *(size_t *)out;
	memcpy((char *)out + sizeof size, (const char *)from + sizeof size,
		(size < n ? size : n) - sizeof size);
}

// Fills in Device and Context of a manager.
int ta_mm_device(ta_mm *m, ta_manager_call *c);

// The free bytes of a context's device under the limits, and all bytes of the device.
CUresult ta_mm_memory(CUcontext c, size_t *free, size_t *total);

// ta_mm_alloc for a round of a queue; round 0 is no round.
void *ta_mm_get_block(
	ta_mm *m, uint64_t instance, size_t bytes, int kind, void *stream, uint64_t round);

// Sets the free bytes of a call: the given number or, for TA_MM_ASK, those of the manager's device
// as the device heap rounds them. Returns -1 with errno on failure. *total becomes the device's
// memory, or 0 if it was not asked for.
int ta_mm_free_of(ta_mm *m, size_t free, ta_manager_call *c, size_t *total);

#endif
