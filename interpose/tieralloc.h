/* tieralloc.h - for programs that know the library; all others need nothing.
 *
 * Link with -ltieralloc, preload the library, or load it with dlopen. Every
 * function may be called from any thread at any time that malloc may. */
#ifndef TIERALLOC_H
#define TIERALLOC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The version of the library that this header belongs to. */
#define TIERALLOC_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { TA_FAST, TA_NORMAL, TA_SLOW } ta_tier;

/* Where a block is wanted: HOT, PREFER_FAST and PIN_FAST in the fast tier, WARM in the
 * normal one, COLD in the slow one. HOT stays in the fast tier up to its hard cap, and
 * is the last to be moved down; PREFER_FAST gives way first; PIN_FAST is in the fast tier
 * for good or not at all. DEFAULT is the calling thread's hint. The numbers of tiers and hints
 * are TierAlloc's (tieralloc_compat.h). */
typedef enum { TA_DEFAULT, TA_HOT, TA_WARM, TA_COLD, TA_PIN_FAST, TA_PREFER_FAST } ta_hint;

/* Allocates bytes for the use that hint tells. Returns NULL with errno ENOMEM, or
 * EINVAL for a hint that is none of the above. Free with ta_free, or, where the
 * library is preloaded, with free. With TA_DISABLE=1 the block is of libc's malloc. */
void *ta_alloc(size_t bytes, ta_hint hint);

/* Sets the hint for what the calling thread allocates with malloc and its like, where no
 * rule of TA_RULES says otherwise. With DEFAULT, as at first, the thread goes by the process's
 * default. Returns the one before; (ta_hint)-1 with errno EINVAL for a hint that is none. */
ta_hint ta_set_hint(ta_hint hint);

/* Sets the process's default, for all threads without a hint of their own: it begins as
 * TA_DEFAULT_HINT, and is that again with DEFAULT. The calling thread and new ones go by it at once,
 * the others from the next block on that their heap has not at hand. Returns the one before;
 * (ta_hint)-1 with errno EINVAL for a hint that is none. */
ta_hint ta_set_default_hint(ta_hint hint);

/* The tier that the first byte of the block at p lies in, or -1 with errno EINVAL where p
 * is no block of this library. */
int ta_tier_of(const void *p);

/* A block larger than what is left of its tier may lie in two tiers, its first part in the
 * faster one. Sets bytes[t] to how many of the n bytes from offset on of the block at p lie
 * in tier t; those beyond the block's end, malloc_usable_size bytes, are not counted. With
 * offset 0 and n SIZE_MAX it tells of the whole block. Returns 0, or -1 with errno EINVAL
 * where p is no block of this library or bytes is NULL. */
int ta_tier_of_range(const void *p, size_t offset, size_t n, size_t bytes[3]);

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

/* Of a tier: blocks allocated there or moved into it, those freed there or moved out of it, and their
 * bytes, which never fall; the bytes of the live ones are bytes_entered - bytes_left. bytes_current is
 * what the tier is charged with, and bytes_peak its highest, in whole spans. */
typedef struct {
	uint64_t blocks_entered, blocks_left, bytes_entered, bytes_left;
	uint64_t bytes_current, bytes_peak, simulated_wait_ns;
} ta_tier_stats;

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
	ta_tier_stats tiers[3]; /* by ta_tier */
} ta_stats;

/* Fills out. Returns 0, or -1 with errno EINVAL (out is NULL or its size is less
 * than 16 or more than 4096) or ENOMEM. On return out->size is the library's own size. */
int ta_get_stats(ta_stats *out);

/* Writes the JSON report (docs/stats.schema.json) to buf as snprintf would, and
 * returns its length without the final zero; 0 with errno ENOMEM on failure. Where the
 * memory of each tier is it asks of some pages and scales; in a forked child it does not ask. */
size_t ta_stats_json(char *buf, size_t n);

/* Is ta_stats_json with flags, or returns 0 with errno EINVAL for a flag that is none. */
enum {
	TA_STATS_EXACT_NODES = 1 /* asks where every page is: up to 0.1 s for each GiB */
};
size_t ta_stats_json_with(char *buf, size_t n, unsigned flags);

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
 * accepted. A block of cudaMalloc may be freed so, and one of ta_cuda_malloc by cudaFree. Where p is
 * no block that the program has, errno is EINVAL afterwards; nothing is freed, the log has a line of
 * it, and the report counts it (frees_invalid, or frees_unknown for an address that is not the library's).
 * It is ENODEV without CUDA, EIO where the device has failed, and as it was before where all is well. */
void ta_cuda_free(void *p, ssize_t size, int device, void *stream);

/* The block is in use on another stream, too: it is not handed out again before what that
 * stream has been given until the free is done. errno is EINVAL afterwards where p was freed, or lies
 * within a block, ENOMEM where there was no memory to note it, and else as it was. Memory that is not the
 * library's is none of its business. */
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
 *   global                blocks free for all streams that are kept, as far as segments of one such
 *                         block can be given back; negative: no limit
 *   coalescing            1: freed blocks are merged with their neighbours at once
 *   coalescing_threshold  0 to 1: they are merged when a request finds none of its
 *                         size and the fragmentation is above
 *   strategy              0: best fit, 1: first fit
 *   peak                  the peaks of the statistics start again; the value means nothing
 *   trace                 1: allocations and frees are recorded from now on, 0: no more */
int ta_cuda_configure(int device, const char *key, double value);

/* The figures of a device, under the names that they have in the report, in a microsecond or
 * so: the report as a whole takes a thousand times as long. */
typedef struct {
	size_t size; /* set to sizeof(ta_cuda_stats) by the caller; filled up to it */
	uint64_t alloc_calls, free_calls;
	uint64_t hits_local, hits_global, hits_split;
	uint64_t misses, foreign_calls, refused;
	uint64_t frees_invalid;
	uint64_t blocks_live, bytes_live, bytes_peak;
	uint64_t bytes_reserved;
	uint64_t bytes_cached_local, bytes_cached_global;
	uint64_t largest_free;
	uint64_t segments, splits, merges;
	uint64_t blocks_warmed, bytes_released;
	uint64_t bytes_device, bytes_current; /* bytes_current, capacity_hard: of the device's tier "fast" */
	uint64_t capacity_hard;               /* 0: none */
	uint64_t segment_size, cache_limit;   /* a limit from 2^63 on is none */
	uint64_t stream_local, global_limit;
	uint64_t recording; /* 1: allocations and frees are recorded */
} ta_cuda_stats;

/* Returns 0, with zeros but for the settings where the device was not used yet; or -1 with errno
 * EINVAL for a size that is none, and ENODEV for a number that is no device's or while devices are
 * not served (TA_CUDA=0, TA_DISABLE=1). */
int ta_cuda_get_stats(int device, ta_cuda_stats *out);

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

/* Managed memory: host and devices read and write it, and its pages go where they are used,
 * advised or prefetched to. The driver keeps what it is told of a range; the library hands
 * that on, so these work for all managed memory of the program, whoever allocated it, and
 * while the library is switched off. p and n are a range of one allocation, in bytes. All that
 * return int return the driver's CUresult:
 *     0  success
 *     1  (CUDA_ERROR_INVALID_VALUE) an argument is none of those that are listed here, or the
 *        range is no managed memory
 *     3  (CUDA_ERROR_NOT_INITIALIZED) there is no driver, or it is not initialised
 *   801  (CUDA_ERROR_NOT_SUPPORTED) the driver lacks the entry point
 * and others that the driver gives, such as 101 (CUDA_ERROR_INVALID_DEVICE) for a device
 * that is none, or has no concurrent access to managed memory. A thread without a current
 * context works in the memory's own. */

/* A place for memory: kind is a CUmemLocationType, id the device's ordinal or the node's
 * number, which is not looked at for the other kinds. Nodes need a driver of 12.2 or later. */
enum { TA_AT_DEVICE = 1, TA_AT_HOST = 2, TA_AT_HOST_NUMA = 3, TA_AT_HOST_NUMA_CURRENT = 4 };
typedef struct {
	int kind, id;
} ta_location;

/* Allocates managed memory in the device's primary context, which stays for the life of the
 * process; it counts against the device's limits as cuMemAllocManaged does. Returns NULL with
 * errno EINVAL for a size of 0, ENOMEM when there is no memory under the limits, ENODEV when
 * there is no such device or no CUDA, ENOTSUP when the device has no managed memory. */
void *ta_managed_malloc(size_t size, int device);

/* Frees managed memory, after all that devices have been given to do. NULL is accepted. */
int ta_managed_free(void *p);

/* Tells the driver how a range will be used; where is not looked at but for the three that
 * name places. Nothing is moved by it. Advice as CUmem_advise. */
enum {
	TA_SET_READ_MOSTLY = 1,   /* copies for reading are kept where it is read */
	TA_UNSET_READ_MOSTLY = 2,
	TA_SET_PREFERRED_LOCATION = 3, /* any kind of place */
	TA_UNSET_PREFERRED_LOCATION = 4,
	TA_SET_ACCESSED_BY = 5,   /* a device or the host: the range stays mapped there */
	TA_UNSET_ACCESSED_BY = 6
};
int ta_managed_advise(void *p, size_t n, int advice, ta_location where);

/* Moves ranges to places, in the order of the stream (a CUstream or cudaStream_t): count
 * ranges p[i] of n[i] bytes, each to where[i], or, with wheres 1, all to where[0]. More than
 * one is one call of the driver, CUDA 13 or later, which the legacy default stream is not
 * accepted for; the ranges then move in any order. */
int ta_managed_prefetch(void *const *p, const size_t *n, size_t count, const ta_location *where, size_t wheres, void *stream);

/* The contents are of no further use: nothing of them is moved, and until the range is written
 * or prefetched what is read there means nothing. CUDA 13 or later, no legacy default stream. */
int ta_managed_discard(void *const *p, const size_t *n, size_t count, void *stream);

/* Both: the ranges are at their places, with contents that mean nothing. */
int ta_managed_discard_prefetch(void *const *p, const size_t *n, size_t count, const ta_location *where, size_t wheres, void *stream);

/* What the driver knows of a range, if it is the same in all of it: attribute is a
 * CUmem_range_attribute, out has room for count numbers. 1 read mostly (0 or 1), 2 preferred
 * location and 4 last prefetch (a device's ordinal, -1 the host, -2 none), 3 accessed by (up
 * to count of those, -2 in the rest); 5 and 6 preferred location, 7 and 8 last prefetch, as
 * kind (0 none) and id (12.2 or later). count is 1 but for 3. */
int ta_managed_get(const void *p, size_t n, int attribute, int *out, size_t count);

/* A memory manager shares the memory of one device between the components of a program, its
 * instances, after cubie's MemoryManager. Each has a part of the total: one that was given
 * to it (manual), or an equal share of what the manual ones leave (automatic). Instances are in
 * groups, and the parts of a group are one budget:
 *
 *   cap of an instance             floor(proportion * total)
 *   available to a group, active   min(sum of the caps - sum of the live bytes, free)
 *   available to a group, passive  free
 *
 * In active mode an allocation beyond its group's budget is refused, once instances of the
 * group that are idle have been asked to give way, the one first that was not used for
 * longest. So is, in both modes, one that the device has no room for, with instances of all groups of all managers of the device.
 * An instance is idle when the stream that it used last has done what it was given. Each is asked once for
 * an allocation, and none where that would not do: then who asks for too much is refused at once.
 *
 * When a context ends, by cuDevicePrimaryCtxReset say, the blocks in it are no more, and not to be freed.
 *
 * Functions return 0, or -1 with errno: EINVAL for what is no argument, ENOENT for an
 * instance that is not registered, EDEADLK in a signal handler that has interrupted one of them on its
 * thread, and what is said of them. On failure nothing has changed. */
typedef struct ta_mm ta_mm;

enum { TA_MM_DEVICE, TA_MM_PINNED, TA_MM_MAPPED, TA_MM_MANAGED }; /* kinds of memory */
enum { TA_MM_PASSIVE, TA_MM_ACTIVE };
#define TA_MM_ASK ((size_t)-1) /* as free: what the device has free under the limits */

/* Has an instance give up what it can, by ta_mm_free, since others are short of memory.
 * Called on the thread that allocates, without a lock; for what it allocates itself nobody has to give way. */
typedef void (*ta_mm_evict)(uint64_t instance, void *arg);

/* A manager of total bytes of a device, for 0 of all that it has under the limits. name, of at
 * most 47 bytes as all names here, is for reports. Returns NULL with errno ENODEV, also
 * where the program has not initialised CUDA, or ENOMEM. */
ta_mm *ta_mm_create(int device, size_t total, const char *name);

/* EBUSY: there are live blocks, or some are being allocated. */
int ta_mm_destroy(ta_mm *m);

int ta_mm_set_mode(ta_mm *m, int mode);

/* Registers an instance under a number of the program's choice. proportion: of the total, 0 to 1;
 * negative: automatic. evict NULL: its blocks are freed when it has to give way, which its evictions
 * tell of, and then are no longer its to free. Returns
 * 1 where less than 5% is left for automatic instances, of which there is none yet. EEXIST: the
 * number is taken. ERANGE: the manual parts would be above 1. ENOSPC: they would leave less than 5%
 * for automatic instances. ENOMEM. */
int ta_mm_register(ta_mm *m, uint64_t instance, const char *name, const char *group, double proportion,
	ta_mm_evict evict, void *arg);

/* EBUSY: it has blocks, or one is being allocated for it. */
int ta_mm_unregister(ta_mm *m, uint64_t instance);

/* Changes how an instance gets its part; results as of ta_mm_register. */
int ta_mm_set_manual(ta_mm *m, uint64_t instance, double proportion);
int ta_mm_set_auto(ta_mm *m, uint64_t instance);
int ta_mm_set_group(ta_mm *m, uint64_t instance, const char *group);

/* The sums of the parts of both kinds. */
int ta_mm_pools(ta_mm *m, double *manual, double *automatic);

typedef struct {
	size_t size; /* set to sizeof(ta_mm_info) by the caller; filled up to it */
	double proportion;
	uint64_t cap, bytes_live, bytes_peak;
	uint64_t allocs, frees;
	uint64_t refused;   /* allocations that failed */
	uint64_t evictions; /* times that it had to give way */
	uint64_t last_used; /* the later, the larger */
	uint64_t manual;    /* 1: manual, 0: automatic */
	char name[48], group[48];
} ta_mm_info;
int ta_mm_get(ta_mm *m, uint64_t instance, ta_mm_info *out);

/* The bytes that a group may have now. Returns 1 where less than 5% of its budget is left. */
int ta_mm_available(ta_mm *m, const char *group, size_t free, size_t *out);

/* An array that is wanted. Arrays that have an axis of runs can be cut along it. */
typedef struct {
	size_t itemsize;
	const size_t *shape; /* ndim lengths */
	int ndim;
	int chunk_axis;  /* the axis of runs; -1, one that is not in the shape, or one of length 1: it is not cut */
	int unchunkable; /* 1: it is not cut either */
	int kind;        /* TA_MM_... */
} ta_mm_request;

typedef struct {
	size_t size; /* set to sizeof(ta_mm_chunking) by the caller; filled up to it */
	size_t chunkable, unchunkable, available; /* bytes */
	size_t chunk_length, chunks;              /* runs of a chunk, number of chunks */
	uint32_t far_too_large;                   /* 1: more than 20 times what is free */
	uint32_t nearly_full;                     /* 1: less than 5% of the group's budget is left */
} ta_mm_chunking;

/* How many runs at once the arrays of a group can be had for: all where they take less than
 * is available, else
 *   chunk_length = floor(runs * (available - unchunkable) / chunkable), chunks = ceil(runs / chunk_length)
 * or less, until its arrays fit: one whose axis has fewer runs is not cut in proportion, and with TA_MM_ASK
 * sizes count as the device heap rounds them.
 * out is filled in also with errno ENOTSUP: none can be cut; E2BIG: those that cannot be cut do not
 * fit; ENOSPC: a single run does not fit. */
int ta_mm_chunk(ta_mm *m, const char *group, size_t free, const ta_mm_request *requests, size_t n, size_t runs,
	ta_mm_chunking *out);

/* Allocates for an instance. Mapped memory has one address for host and device. NULL with errno
 * ENOMEM where the budget, the device or the host has no room, or ENODEV. */
void *ta_mm_alloc(ta_mm *m, uint64_t instance, size_t bytes, int kind, void *stream);

/* Frees a block after what the stream has been given, and that which its instance used last; for other
 * memory than the device's they are waited for. NULL is accepted. EINVAL: no block of the manager. */
int ta_mm_free(ta_mm *m, void *p, void *stream);

/* What an instance wants when its group is allocated for next, of so many runs; it replaces what
 * it wanted before. At most 64 arrays of at most 32 dimensions. EBUSY: what it wants is being allocated, and
 * it was not told yet. */
int ta_mm_queue(ta_mm *m, uint64_t instance, const ta_mm_request *requests, size_t n, size_t runs);

/* Called when the instance's group has been allocated for: blocks[i] is for the i-th array that
 * it has queued for, NULL for one without bytes; n is 0 where it had queued for none. How they are cut is
 * the same for all of the group. */
typedef void (*ta_mm_ready)(uint64_t instance, const ta_mm_chunking *chunking, void *const *blocks, size_t n, void *arg);
int ta_mm_on_ready(ta_mm *m, uint64_t instance, ta_mm_ready ready, void *arg);

/* Allocates all that the instances of a group want, cut as ta_mm_chunk says, and tells each of its
 * members. Before anything is cut, idle instances that have not queued for the group are asked to give way: where the
 * group's budget is short its members; where the device is, and free is TA_MM_ASK, those of all groups of all managers
 * of the device. Where memory is refused all the same, the chunk is shortened, down to a run. There are as many runs as the longest queue has; no chunk of an array is longer than its axis. Where it
 * fails, with errno as of ta_mm_chunk and ta_mm_alloc, nothing is allocated, and what is wanted stays. EBUSY: a
 * member is being allocated for already, and was not told yet. out may be NULL. */
int ta_mm_allocate_queue(ta_mm *m, uint64_t instance, size_t free, void *stream, ta_mm_chunking *out);

/* Who was asked already to give way; zero at first. */
typedef struct {
	uint64_t after, until;
} ta_mm_asked;

/* Has one idle instance give way, the one that was not used for longest: of the group of an instance, or, with everywhere
 * != 0, of all groups of all managers of the device, if it has some of that. Returns 1 if one has
 * less than before, 0 if nobody is left to ask, or the caller is an instance that is being asked itself. Those that have queued
 * for the group, are held, or were asked already are not asked. */
int ta_mm_ask_idle(ta_mm *m, uint64_t instance, int everywhere, ta_mm_asked *asked);

/* With on 1 the instance is not asked to give way until it is called once more with 0, and nobody is for
 * ta_mm_alloc of it: the caller allocates for it, and calls ta_mm_ask_idle. EINVAL: it is not held. */
int ta_mm_hold(ta_mm *m, uint64_t instance, int on);

/* The instance works with what it has, on the stream. */
int ta_mm_use(ta_mm *m, uint64_t instance, void *stream);

/* Counts bytes that an instance has from elsewhere, or, negative, no longer has. It is not refused
 * for want of room. ERANGE: it does not have so many from elsewhere. */
int ta_mm_charge(ta_mm *m, uint64_t instance, ssize_t bytes);

#ifdef __cplusplus
}
#endif
#endif
