// Walks over the calling thread's stack.
#ifndef TA_BOOT_WALK_H
#define TA_BOOT_WALK_H
#include <link.h>
#include <stdint.h>
#include "layout.h"

// The loader's facts about an object.
struct ta_object {
	uintptr_t start, end; // its mapped addresses
	struct link_map *map;
	uintptr_t header; // its .eh_frame_hdr, or 0
};

// Finds _dl_find_object, which is new in glibc 2.35 and takes no lock. Without it no object is
// found.
void ta_walk_prepare(void);

// Whether an object has the address.
int ta_object_of(uintptr_t address, struct ta_object *o);

// Notes the callers of the library in s, a walk that was begun, most at most. Returns how the walk
// has ended: TA_UNWIND_GOING if there are more.
unsigned long ta_walk(struct ta_stack *s, uintptr_t most);

#endif
