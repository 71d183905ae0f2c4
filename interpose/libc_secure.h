// The fast path of TA_SECURE=1.
#ifndef TA_LIBC_SECURE_H
#define TA_LIBC_SECURE_H
#include "heap.h"

// Allocates n zero bytes for a function of the family in how, or returns NULL if the slow path must
// take the call.
void *ta_secure_malloc(size_t n, unsigned how);
// Frees p, an address in pg. The parameters are those of ta_free_other.
void ta_secure_free(ta_page *pg, void *p, const char *fn, unsigned how, size_t size);

#endif
