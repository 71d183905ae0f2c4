// The order of C's locks. In the debug build (build tag lockrank) each of them tells Go when a
// thread has taken it, and Go compares that with the table of internal/lockrank. rank is a
// TA_LOCK_* of layout.h.
#ifndef TA_LOCK_ORDER_H
#define TA_LOCK_ORDER_H
#ifdef TA_LOCKRANK
#	include "boot.h"
#	include "exports.h"
#	define TA_LOCK_TAKEN(rank, word) ta_go_lock_taken(ta_token(), rank, (uintptr_t)(word))
#	define TA_LOCK_RELEASES(rank)    ta_go_lock_taken(0, rank, 0)
#else
#	define TA_LOCK_TAKEN(rank, word) ((void)0)
#	define TA_LOCK_RELEASES(rank)    ((void)0)
#endif
#endif
