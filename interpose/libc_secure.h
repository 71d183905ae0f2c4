// The fast path of TA_SECURE=1.
#ifndef TA_LIBC_SECURE_H
#define TA_LIBC_SECURE_H
#include "heap.h"

// A block of n bytes, zero, made by a function of the family in how; or NULL where the call is one
// for the slow path.
void *ta_secure_malloc(size_t n, unsigned how);
// Frees p, in pg: the parameters are ta_free_other's.
void ta_secure_free(ta_page *pg, void *p, const char *fn, unsigned how, size_t size);

#endif
