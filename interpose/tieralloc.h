/* tieralloc.h - for programs that know the library; all others need nothing.
 *
 * Link with -ltieralloc, preload the library, or load it with dlopen. Every
 * function may be called from any thread at any time that malloc may. */
#ifndef TIERALLOC_H
#define TIERALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { TA_FAST, TA_NORMAL, TA_SLOW } ta_tier;

/* Where a block is wanted: HOT, PREFER_FAST and PIN_FAST in the fast tier, WARM in the
 * normal one, COLD in the slow one. HOT stays in the fast tier up to its hard cap, and
 * is the last to be moved down; PREFER_FAST gives way first; PIN_FAST is in the fast tier
 * for good or not at all. */
typedef enum { TA_HOT, TA_WARM, TA_COLD, TA_PIN_FAST, TA_PREFER_FAST } ta_hint;

/* Allocates bytes for the use that hint tells. Returns NULL with errno ENOMEM, or
 * EINVAL for a hint that is none of the above. Free with ta_free, or, where the
 * library is preloaded, with free. */
void *ta_alloc(size_t bytes, ta_hint hint);

/* Sets the hint for what the calling thread allocates with malloc and its like, where no
 * rule of TA_RULES says otherwise. Returns the one before; (ta_hint)-1 with errno EINVAL
 * for a hint that is none. */
ta_hint ta_set_hint(ta_hint hint);

/* The tier that the block at p lies in, or -1 with errno EINVAL where p is no block of
 * this library. */
int ta_tier_of(const void *p);

/* Moves a block to another tier, contents and all. A block of more than 256 KiB keeps its
 * address (of more than 4 MiB, in a tier of huge pages); a smaller one is copied and the
 * old one freed. Returns the block's address, or NULL, with the block as it was and errno
 *   EINVAL  p is no block of this library, or dst no tier
 *   EPERM   the block is PIN_FAST
 *   ENOMEM  the tier has no room under its hard cap, or there is no memory
 *   EBUSY   the kernel would not move a page of it, or another thread is moving it
 * The block must not be freed or reallocated meanwhile. */
void *ta_move(void *p, ta_tier dst);

/* Frees a block of ta_alloc. NULL is accepted. Where the library was loaded with
 * dlopen, a block of the program's own malloc goes to the program's own free. */
void ta_free(void *p);

/* Counters of this process. Blocks and bytes are exact while other threads are
 * quiet; bytes are of size classes, not of requests; peaks are of whole spans. */
typedef struct {
	size_t size;      /* set to sizeof(ta_stats) by the caller; filled up to it */
	uint64_t version; /* of this structure */
	uint64_t bytes_mapped, bytes_committed, bytes_live, bytes_peak, bytes_cached;
	uint64_t bytes_total_alloc, bytes_total_freed;
	uint64_t blocks_live, blocks_total_alloc, blocks_total_freed;
	uint64_t huge_blocks_live, huge_bytes_live, spans_free;
	uint64_t cross_thread_frees, calls_failed;
} ta_stats;

/* Fills out. Returns 0, or -1 with errno EINVAL (out is NULL or its size is less
 * than 16) or ENOMEM. On return out->size is the library's own size. */
int ta_get_stats(ta_stats *out);

/* Writes the JSON report (docs/stats.schema.json) to buf as snprintf would, and
 * returns its length without the final zero; 0 with errno ENOMEM on failure. */
size_t ta_stats_json(char *buf, size_t n);

/* Writes the JSON report to a file, mode 0600, whole or not at all. Returns 0, or
 * -1 with errno. */
int ta_stats_write(const char *path);

#ifdef __cplusplus
}
#endif
#endif
