/* tieralloc.h - for programs that know the library; all others need nothing.
 *
 * Link with -ltieralloc, preload the library, or load it with dlopen. Every
 * function may be called from any thread at any time that malloc may. */
#ifndef TIERALLOC_H
#define TIERALLOC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Device memory for what a CUDA stream does: ta_cuda_malloc and ta_cuda_free have the
 * signatures of PyTorch's pluggable allocator. device is the driver's ordinal; its primary
 * context serves, and stays for the life of the process. stream is a cudaStream_t or
 * CUstream; NULL is the legacy default stream. The program must have loaded and
 * initialised CUDA. */

/* Allocates size bytes that stream may use at once; other streams, after they have waited
 * for it. Returns NULL for a size of 0, and with errno ENOMEM when there is no memory under
 * the limits, ENODEV when there is no such device or no CUDA. */
void *ta_cuda_malloc(ssize_t size, int device, void *stream);

/* Frees a block after all that stream was given until now. size is not looked at. NULL is
 * accepted. A block of cudaMalloc may be freed so, and one of ta_cuda_malloc by cudaFree. */
void ta_cuda_free(void *p, ssize_t size, int device, void *stream);

/* The block is in use on another stream, too: it is not handed out again before what that
 * stream has been given until the free is done. */
void ta_cuda_record_stream(void *p, void *stream);

/* Allocates n blocks, all or none. Returns 0, or -1 with errno as ta_cuda_malloc, or EINVAL. */
int ta_cuda_malloc_batch(int device, void *stream, const size_t *sizes, void **out, int n);

/* Fills the device's cache with counts[i] blocks of sizes[i] bytes for each i < n. Returns
 * 0, or -1 with errno EINVAL, ENOMEM or ENODEV. */
int ta_cuda_warmup(int device, const size_t *sizes, const int *counts, int n);

/* Gives cached memory back to the driver: all of it, or what a device has beyond bytes.
 * ta_cuda_trim_to returns 0, or -1 with errno ENODEV for a device that was not used. */
void ta_cuda_trim(void);
int ta_cuda_trim_to(int device, size_t bytes);

/* Merges the free blocks of a device, of all devices for -1, as far as may be at once.
 * Returns 0, or -1 with errno ENODEV for a device that was not used. */
int ta_cuda_coalesce(int device);

/* Changes a setting of a device, of all for -1, while the program runs. Returns 0, or -1
 * with errno EINVAL for a key or a value that is none. Keys:
 *   segment_size          bytes of segments to come, a multiple of 2 MiB up to 64 GiB
 *   cache_limit           bytes of free blocks that are kept; negative: no limit
 *   stream_local          blocks of one stream that wait for a request of their size
 *   global                free segments that are kept; negative: no limit
 *   coalescing            1: freed blocks are merged with their neighbours at once
 *   coalescing_threshold  0 to 1: they are merged when a request finds none of its
 *                         size and the fragmentation is above
 *   strategy              0: best fit, 1: first fit
 *   peak                  the peaks of the statistics start again; the value means nothing
 *   trace                 1: allocations and frees are recorded from now on, 0: no more */
int ta_cuda_configure(int device, const char *key, double value);

/* Writes what was recorded of a device, as snprintf does, and returns the length of the whole
 * text: a header and a line for each event, the oldest first, with the columns of
 * RMM's replay benchmark. The last 131072 events of all devices are kept. Returns 0 with errno
 * ENODEV for a number that is no device's. */
size_t ta_cuda_trace(int device, char *buf, size_t n);

/* ta_cuda_malloc for PyTorch, which does not look for NULL: where there is no memory it
 * throws std::bad_alloc, in a process with the C++ library. */
void *ta_cuda_torch_malloc(ssize_t size, int device, void *stream);

/* From begin to end, what is allocated by ta_cuda_malloc on the device, but for the
 * per-thread default stream, belongs to the pool (id0, id1): it comes from there and
 * returns to there until release. For graphs: what one uses must not be handed out to
 * others while it may be replayed. filter is not looked at. */
void ta_cuda_pool_begin(int device, uint64_t id0, uint64_t id1, void *filter);
void ta_cuda_pool_end(int device, uint64_t id0, uint64_t id1);
void ta_cuda_pool_release(int device, uint64_t id0, uint64_t id1);

#ifdef __cplusplus
}
#endif
#endif
