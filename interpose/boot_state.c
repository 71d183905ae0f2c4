// The state that the C files of the library share: what boot sets, and the heap of the calling
// thread. This file calls no other, so every file may use it.
#include "boot.h"

int ta_mode;
int ta_guest;
int ta_torn;
struct ta_flags ta_flags;
uint64_t ta_unloads = 1;
volatile uint64_t *ta_alive;

// The heap of a thread without a heap. Its pages never have a block, so the fast path needs no test
// for "no heap". The loader writes these addresses into the data of the library in every process,
// and no others (interpose/order.ld).
ta_page ta_page_none;
static ta_thread thread_none;
__attribute__((section(".data.none"))) ta_heap ta_heap_none = {
	.Thread = &thread_none,
	.Direct = {[0 ... TA_DIRECT_COUNT - 1] = &ta_page_none},
	.Cur = {[0 ... TA_CLASSES - 1] = &ta_page_none},
};

ta_page **ta_root[TA_ROOT_ENTRIES];

TLS ta_heap *ta_self = &ta_heap_none;

HOT uintptr_t ta_token(void) { return (uintptr_t)&ta_self; }
