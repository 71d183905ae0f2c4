// A lock that a forked child finds free: the word is the number of the process that holds it, so
// one that another thread of the parent held is nobody's.
#ifndef TA_PROCESS_LOCK_H
#define TA_PROCESS_LOCK_H
#include "syscall.h"

static inline void ta_process_lock(int *word)
{
	int self = (int)ta_pid(), owner = 0;
	while (!__atomic_compare_exchange_n(word, &owner, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		if (owner == self) {
			owner = 0;
			ta_sys4(SYS_sched_yield, 0, 0, 0, 0);
		}
}

static inline void ta_process_unlock(int *word) { __atomic_store_n(word, 0, __ATOMIC_RELEASE); }

#endif
