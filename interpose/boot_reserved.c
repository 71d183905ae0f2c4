// Addresses that the Go runtime has reserved.
//
// The runtime reserves more than a gigabyte of addresses and uses a few megabytes. The host may be
// given a limit on addresses (RLIMIT_AS) later. So the library unmaps the unused ones when the
// runtime has started. Later requests of the runtime are mapped at the reserved addresses if these
// are still free.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include "boot.h"
#include "layout.h"
#include "lock_order.h"

#ifndef MAP_FIXED_NOREPLACE
#	define MAP_FIXED_NOREPLACE 0x100000
#endif

struct range {
	uintptr_t from, to;
};

// Addresses that the runtime has reserved and not mapped. If the table is full, further ones stay
// reserved permanently.
enum { RANGES = 64 };
static struct range idle[RANGES];
static unsigned ranges;
static int trimmed; // the ranges in the table were unmapped
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
	pthread_mutex_lock(&mutex);
	TA_LOCK_TAKEN(TA_LOCK_RESERVED, 0);
}

static void unlock(void)
{
	TA_LOCK_RELEASES(TA_LOCK_RESERVED);
	pthread_mutex_unlock(&mutex);
}

static void add(uintptr_t from, uintptr_t to)
{
	if (from < to && ranges < RANGES)
		idle[ranges++] = (struct range){from, to};
}

// Removes the addresses between from and to from the table. Returns how many were in it.
static uintptr_t take(uintptr_t from, uintptr_t to)
{
	uintptr_t taken = 0;
	for (unsigned i = 0; i < ranges;) {
		struct range r = idle[i];
		uintptr_t low = from > r.from ? from : r.from, high = to < r.to ? to : r.to;
		if (low >= high) {
			i++;
			continue;
		}
		taken += high - low;
		idle[i] = idle[--ranges];
		add(r.from, low);
		add(high, r.to);
	}
	return taken;
}

void ta_reserved_trim(void)
{
	lock();
	for (unsigned i = 0; i < ranges;)
		if (munmap((void *)idle[i].from, idle[i].to - idle[i].from) == 0)
			i++;
		else
			idle[i] = idle[--ranges];
	trimmed = 1;
	unlock();
}

// Maps as the runtime asks. After the trim it fails rather than replace a mapping of others.
static void *map(void *addr, uintptr_t n, int prot, int flags, int fd, off_t offset)
{
	uintptr_t had = flags & MAP_FIXED ? take((uintptr_t)addr, (uintptr_t)addr + n) : 0;
	if (had != 0 && trimmed) {
		if (had != n)
			return MAP_FAILED;
		flags = (flags & ~MAP_FIXED) | MAP_FIXED_NOREPLACE;
	}
	void *p = mmap(addr, n, prot, flags, fd, offset);
	// a kernel that does not know the flag
	if (p != MAP_FAILED && flags & MAP_FIXED_NOREPLACE && p != addr) {
		munmap(p, n);
		return MAP_FAILED;
	}
	if (p != MAP_FAILED && prot == PROT_NONE && !(flags & MAP_FIXED) && !trimmed)
		add((uintptr_t)p, (uintptr_t)p + n);
	return p;
}

void *ta_reserved_map(void *addr, uintptr_t n, int prot, int flags, int fd, off_t offset)
{
	lock();
	void *p = map(addr, n, prot, flags, fd, offset);
	unlock();
	return p;
}

// The kernel may refuse to split a mapping. Then the memory stays mapped.
void ta_reserved_unmap(void *addr, uintptr_t n)
{
	lock();
	uintptr_t gone = take((uintptr_t)addr, (uintptr_t)addr + n);
	if (gone == 0 || !trimmed) // after the trim the host may have mapped some of it
		munmap(addr, n);
	unlock();
}
