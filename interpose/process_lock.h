// A lock that is free in a forked child. The word is the number of the process that holds the lock,
// so a lock that another thread of the parent held has no holder in the child.
#ifndef TA_PROCESS_LOCK_H
#define TA_PROCESS_LOCK_H
#include "layout.h"
#include "lock_order.h"
#include "syscall.h"

static inline void ta_process_lock(int *word, unsigned rank)
{
	int self = (int)ta_pid(), owner = 0;
	while (!__atomic_compare_exchange_n(word, &owner, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		if (owner == self) {
			owner = 0;
			ta_sys4(SYS_sched_yield, 0, 0, 0, 0);
		}
	TA_LOCK_TAKEN(rank, word);
}

static inline void ta_process_unlock(int *word, unsigned rank)
{
	TA_LOCK_RELEASES(rank);
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

#endif
