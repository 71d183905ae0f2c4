// Small blocks for the threads of the control plane. They are of no tier, because the log begins
// when a tier is full, and count as no calls. Once all slots are in use the heap serves.
#include <stdint.h>
#include <string.h>
#include "boot.h"

enum { SLOTS = 64, SLOT = 512 }; // none lies in two pages

static _Alignas(SLOT) char slots[SLOTS][SLOT];
static uint64_t used; // a bit for each slot

TLS int ta_in_control;

void *ta_slot_take(size_t n)
{
	uint64_t was = __atomic_load_n(&used, __ATOMIC_RELAXED);
	if (n > SLOT || ta_mode != TA_ACTIVE)
		return NULL;
	while (~was != 0) {
		int i = __builtin_ctzl(~was);
		if (__atomic_compare_exchange_n(
				&used, &was, was | UINT64_C(1) << i, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return memset(slots[i], 0, SLOT);
	}
	return NULL;
}

HOT int ta_slot_has(void *p) { return (uintptr_t)p - (uintptr_t)slots < sizeof slots; }

void ta_slot_free(void *p)
{
	uintptr_t i = ((uintptr_t)p - (uintptr_t)slots) / SLOT;
	__atomic_fetch_and(&used, ~(UINT64_C(1) << i), __ATOMIC_RELEASE);
}
