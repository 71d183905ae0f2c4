// Small blocks for the threads of the control plane. They are of no tier, because the log begins
// when a tier is full, and count as no calls. Once all slots are in use the heap serves. They are
// mapped with the first: the addresses that the library itself takes are counted where there is a
// limit on them.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include "boot.h"
#include "syscall.h"

enum { SLOTS = 64 };

static char (*slots)[TA_SLOT];
static uint64_t used; // a bit for each slot

TLS int ta_in_control;

static int map_slots(void)
{
	char(*first)[TA_SLOT] = NULL;
	long at = ta_sys(SYS_mmap, 0, SLOTS * TA_SLOT, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, (uintptr_t)-1, 0);
	if (at < 0 && at >= -4095)
		return 0;
	if (!__atomic_compare_exchange_n(
			&slots, &first, (void *)at, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		ta_sys4(SYS_munmap, at, SLOTS * TA_SLOT, 0, 0);
	return 1;
}

void *ta_slot_take(size_t n)
{
	uint64_t was = __atomic_load_n(&used, __ATOMIC_RELAXED);
	if (n > TA_SLOT || ta_mode != TA_ACTIVE)
		return NULL;
	if (__atomic_load_n(&slots, __ATOMIC_ACQUIRE) == NULL && !map_slots())
		return NULL;
	while (~was != 0) {
		int i = __builtin_ctzl(~was);
		if (__atomic_compare_exchange_n(
				&used, &was, was | UINT64_C(1) << i, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return memset(slots[i], 0, TA_SLOT);
	}
	return NULL;
}

HOT int ta_slot_has(void *p)
{
	return slots != NULL && (uintptr_t)p - (uintptr_t)slots < SLOTS * TA_SLOT;
}

void ta_slot_free(void *p)
{
	uintptr_t i = ((uintptr_t)p - (uintptr_t)slots) / TA_SLOT;
	__atomic_fetch_and(&used, ~(UINT64_C(1) << i), __ATOMIC_RELEASE);
}
