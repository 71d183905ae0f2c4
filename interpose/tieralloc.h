/* tieralloc.h - the interface of libtieralloc.so for programs that know it.
 *
 * A program that is preloaded with the library needs no header. This one is for programs that
 * choose the tier of a block, ask for statistics, allocate device memory for a CUDA stream, or
 * share a device between components. Link with -ltieralloc, preload the library, or load it with
 * dlopen.
 *
 * Any thread may call any function at any time at which it may call malloc. Functions that fail
 * set errno, as each comment says. docs/configuration.md describes the tiers' settings. */
#ifndef TIERALLOC_H
#define TIERALLOC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The version of the library that this header belongs to. */
#define TIERALLOC_VERSION "1.0.0"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Host memory ---- */

/* A tier is a set of memory nodes. */
typedef enum { TA_FAST, TA_NORMAL, TA_SLOW } ta_tier;

/* A hint says what a block is for, and so where it belongs:
 *
 *   TA_DEFAULT      the calling thread's hint
 *   TA_HOT          the fast tier, up to its hard cap; demoted last
 *   TA_WARM         the normal tier
 *   TA_COLD         the slow tier
 *   TA_PIN_FAST     the fast tier permanently, or the allocation fails
 *   TA_PREFER_FAST  the fast tier; the first to go to the next tier, or to be demoted
 *
 * Tiers and hints have TierAlloc's numbers (tieralloc_compat.h). */
typedef enum { TA_DEFAULT, TA_HOT, TA_WARM, TA_COLD, TA_PIN_FAST, TA_PREFER_FAST } ta_hint;

/* Allocates a block with a hint. Free it with ta_free or, where the library is preloaded, with
 * free. With TA_DISABLE=1 libc's malloc serves it.
 * Returns NULL with errno
 *   ENOMEM  there is no memory under the caps
 *   EINVAL  hint is not a ta_hint */
void *ta_alloc(size_t bytes, ta_hint hint);

/* Sets the calling thread's hint, which holds for malloc and its like where no rule of TA_RULES
 * matches. TA_DEFAULT, the initial value, makes the thread follow the process's default.
 * Returns the previous hint, or (ta_hint)-1 with errno EINVAL if hint is not a ta_hint. */
ta_hint ta_set_hint(ta_hint hint);

/* Sets the process's default, for all threads without a hint of their own. The initial value is
 * TA_DEFAULT_HINT's, and TA_DEFAULT restores it. The calling thread and new threads follow it at
 * once. Other threads follow it from the next block on that is not in their heap's cache.
 * Returns the previous default, or (ta_hint)-1 with errno EINVAL if hint is not a ta_hint. */
ta_hint ta_set_default_hint(ta_hint hint);

/* Returns the tier of the first byte of the block at p, or -1 with errno EINVAL if p is not a block
 * of this library. */
int ta_tier_of(const void *p);

/* Counts the bytes of a block by tier. A block that is larger than the rest of its tier may lie in
 * two tiers, its first part in the faster one. bytes[t] is set to the number of bytes in tier t, of
 * the n bytes from offset on. Bytes beyond the end of the block (malloc_usable_size) do not count.
 * Offset 0 and n SIZE_MAX cover the whole block.
 * Returns 0, or -1 with errno EINVAL if p is not a block of this library or bytes is NULL. */
int ta_tier_of_range(const void *p, size_t offset, size_t n, size_t bytes[3]);

/* Moves a block, with its contents, to another tier. A block above 256 KiB keeps its address
 * (above 4 MiB in a tier of huge pages). A smaller block is copied, and the old one is freed. The
 * block must not be freed or reallocated during the call.
 * Returns the block's address, or NULL, with the block unchanged and errno
 *   EINVAL  p is not a block of this library, or dst is not a ta_tier
 *   EPERM   the block is TA_PIN_FAST
 *   ENOMEM  the tier has no room under its hard cap, or there is no memory
 *   EBUSY   the kernel would not move one of its pages, or another thread is moving it */
void *ta_move(void *p, ta_tier dst);

/* Frees a block of ta_alloc. NULL is accepted. Where the library was loaded with dlopen, a block of
 * the program's own malloc goes to the program's own free. */
void ta_free(void *p);

/* ---- Statistics ---- */

/* The figures of one tier. Blocks enter a tier when they are allocated there or moved into it, and
 * leave it when they are freed there or moved out of it. The four counts of blocks and bytes that
 * entered and left never fall. The bytes of live blocks are bytes_entered - bytes_left.
 * bytes_current is the tier's charge, and bytes_peak its maximum, in whole spans. */
typedef struct {
	uint64_t blocks_entered, blocks_left, bytes_entered, bytes_left;
	uint64_t bytes_current, bytes_peak, simulated_wait_ns;
} ta_tier_stats;

/* The figures of this process. Blocks and bytes are exact while other threads are quiet. Bytes are
 * of size classes, not of requests. Peaks are of whole spans. */
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

/* Fills out with the figures of this process. Sets out->size to the library's own size of ta_stats.
 * Returns 0, or -1 with errno
 *   EINVAL  out is NULL, or out->size is below 16 or above 4096
 *   ENOMEM  there is no memory */
int ta_get_stats(ta_stats *out);

/* Writes the JSON report (docs/stats.schema.json) to buf as snprintf does. The nodes of a tier's
 * memory are sampled and scaled; in a forked child they are left out.
 * Returns the length of the report without the final zero, or 0 with errno ENOMEM. */
size_t ta_stats_json(char *buf, size_t n);

enum {
	TA_STATS_EXACT_NODES = 1 /* asks where every page is: up to 0.1 s for each GiB */
};

/* Writes the JSON report as ta_stats_json does, with flags of the enum above.
 * Returns 0 with errno EINVAL for an unknown flag. */
size_t ta_stats_json_with(char *buf, size_t n, unsigned flags);

/* Writes the JSON report to a file, with mode 0600, whole or not at all.
 * Returns 0, or -1 with errno. */
int ta_stats_write(const char *path);

/* ---- Device memory in the order of CUDA streams ----
 *
 * device is the driver's ordinal. The device's primary context serves the memory, and stays for
 * the life of the process. stream is a cudaStream_t or CUstream; NULL is the legacy default
 * stream. The program must have loaded and initialised CUDA. ta_cuda_malloc and ta_cuda_free have
 * the signatures of PyTorch's pluggable allocator. */

/* Allocates size bytes that stream may use at once, and other streams after they have waited for
 * it.
 * Returns NULL for a size of 0, and NULL with errno
 *   ENOMEM  there is no memory under the limits
 *   ENODEV  there is no such device or no CUDA */
void *ta_cuda_malloc(ssize_t size, int device, void *stream);

/* Frees a block after all work submitted to stream before this call. size is ignored. NULL is
 * accepted. A block of cudaMalloc may be freed here, and a block of ta_cuda_malloc by cudaFree.
 * On success errno is unchanged. Else it is
 *   EINVAL  p is not a block in use. Nothing is freed, the log has a line, and the report counts
 *           the call in frees_invalid, or in frees_unknown if the address is not the library's
 *   ENODEV  there is no CUDA
 *   EIO     the device has failed */
void ta_cuda_free(void *p, ssize_t size, int device, void *stream);

/* Marks a block as used by another stream. The block is not reused before the work that this stream
 * is given until the free is done. Memory that is not the library's is ignored.
 * On success errno is unchanged. Else it is
 *   EINVAL  p was freed, or lies within a block
 *   ENOMEM  there is no memory to note the stream */
void ta_cuda_record_stream(void *p, void *stream);

/* Allocates n blocks, all or none.
 * Returns 0, or -1 with errno as of ta_cuda_malloc, or EINVAL. */
int ta_cuda_malloc_batch(int device, void *stream, const size_t *sizes, void **out, int n);

/* Fills the device's cache with counts[i] blocks of sizes[i] bytes for each i < n.
 * Returns 0, or -1 with errno EINVAL, ENOMEM or ENODEV. */
int ta_cuda_warmup(int device, const size_t *sizes, const int *counts, int n);

/* Returns cached memory to the driver: ta_cuda_trim all of it, ta_cuda_trim_to what a device has
 * cached beyond bytes.
 * ta_cuda_trim_to returns 0, or -1 with errno ENODEV if the device was not used. */
void ta_cuda_trim(void);
int ta_cuda_trim_to(int device, size_t bytes);

/* Merges the free blocks of a device, or of all devices for -1, as far as possible at once.
 * Returns 0, or -1 with errno ENODEV if the device was not used. */
int ta_cuda_coalesce(int device);

/* Changes a setting of a device, or of all devices for -1, while the program runs. The keys are:
 *
 *   segment_size          size of new segments: a multiple of 2 MiB, up to 64 GiB
 *   cache_limit           bytes of free blocks that are kept; negative: no limit
 *   stream_local          blocks of one stream that wait for a request of their size
 *   global                blocks, free for all streams, that are kept. Beyond it, segments that are
 *                         one such block return to the driver; negative: no limit
 *   coalescing            1: freed blocks are merged with their neighbours at once
 *   coalescing_threshold  0 to 1: freed blocks are merged when a request finds none of its size and
 *                         the fragmentation is above this
 *   strategy              0: best fit, 1: first fit
 *   peak                  resets the peaks of the statistics; the value is ignored
 *   trace                 1: records allocations and frees from now on, 0: stops recording
 *
 * Returns 0, or -1 with errno EINVAL for an unknown key or a wrong value. */
int ta_cuda_configure(int device, const char *key, double value);

/* The figures of a device, with their names in the report. Asking for them takes a microsecond or
 * so, a report a thousand times as long. */
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
	uint64_t bytes_device, bytes_current; /* bytes_current: of the device's tier "fast" */
	uint64_t capacity_hard;               /* of the same; 0: none */
	uint64_t segment_size, cache_limit;   /* a limit from 2^63 on is none */
	uint64_t stream_local, global_limit;
	uint64_t recording; /* 1: allocations and frees are recorded */
} ta_cuda_stats;

/* Fills out with the figures of a device. If the device was not used yet, all but the settings are
 * 0.
 * Returns 0, or -1 with errno
 *   EINVAL  out->size is wrong
 *   ENODEV  there is no such device, or devices are not served (TA_CUDA=0, TA_DISABLE=1) */
int ta_cuda_get_stats(int device, ta_cuda_stats *out);

/* Writes the recorded events of a device to buf as snprintf does: a header, then one line for each
 * event, oldest first, in the columns of RMM's replay benchmark. The last 131072 events of all
 * devices are kept.
 * Returns the length of the whole text, or 0 with errno ENODEV if there is no such device. */
size_t ta_cuda_trace(int device, char *buf, size_t n);

/* Allocates as ta_cuda_malloc does, for PyTorch, which does not check for NULL: without memory it
 * throws std::bad_alloc, in a process with the C++ library. */
void *ta_cuda_torch_malloc(ssize_t size, int device, void *stream);

/* A pool keeps the memory of CUDA graphs apart, because a graph that is replayed writes to the
 * same addresses again. From begin to end, all blocks that ta_cuda_malloc allocates on the device
 * belong to the pool (id0, id1), except those of the per-thread default stream. They come from the
 * pool and return to it until it is released. filter is ignored. */
void ta_cuda_pool_begin(int device, uint64_t id0, uint64_t id1, void *filter);
void ta_cuda_pool_end(int device, uint64_t id0, uint64_t id1);
void ta_cuda_pool_release(int device, uint64_t id0, uint64_t id1);

/* ---- Managed memory ----
 *
 * Host and devices read and write managed memory. Its pages move to where they are used, advised or
 * prefetched. The driver keeps all state, and the library passes calls on. So these functions work
 * for all managed memory of the program, whoever allocated it, and while the library is switched
 * off. p and n are a range of one allocation, in bytes. A thread without a current context works in
 * the memory's own.
 *
 * Functions that return int return the driver's CUresult, among them:
 *     0  success
 *     1  (CUDA_ERROR_INVALID_VALUE) an argument is none of those listed here, or the range is not
 *        managed memory
 *     3  (CUDA_ERROR_NOT_INITIALIZED) there is no driver, or it is not initialised
 *   101  (CUDA_ERROR_INVALID_DEVICE) there is no such device, or it has no concurrent access to
 *        managed memory
 *   801  (CUDA_ERROR_NOT_SUPPORTED) the driver lacks the entry point */

/* A place for memory. kind is a CUmemLocationType. id is a device's ordinal or a node's number, and
 * ignored for the other kinds. Nodes need a driver of 12.2 or later. */
enum { TA_AT_DEVICE = 1, TA_AT_HOST = 2, TA_AT_HOST_NUMA = 3, TA_AT_HOST_NUMA_CURRENT = 4 };
typedef struct {
	int kind, id;
} ta_location;

/* Allocates managed memory in the device's primary context, which stays for the life of the
 * process. It counts against the device's limits, as memory of cuMemAllocManaged does.
 * Returns NULL with errno
 *   EINVAL   size is 0
 *   ENOMEM   there is no memory under the limits
 *   ENODEV   there is no such device or no CUDA
 *   ENOTSUP  the device has no managed memory */
void *ta_managed_malloc(size_t size, int device);

/* Frees managed memory after all work that devices were given. NULL is accepted. */
int ta_managed_free(void *p);

/* Tells the driver how a range will be used, and moves nothing. advice is a CUmem_advise. where is
 * ignored except by the three that name places. */
enum {
	TA_SET_READ_MOSTLY = 1, /* copies for reading are kept where it is read */
	TA_UNSET_READ_MOSTLY = 2,
	TA_SET_PREFERRED_LOCATION = 3, /* any kind of place */
	TA_UNSET_PREFERRED_LOCATION = 4,
	TA_SET_ACCESSED_BY = 5, /* a device or the host: the range stays mapped there */
	TA_UNSET_ACCESSED_BY = 6
};
int ta_managed_advise(void *p, size_t n, int advice, ta_location where);

/* Moves count ranges to places, in the order of the stream (a CUstream or cudaStream_t). Range i is
 * the n[i] bytes at p[i]. It moves to where[i] or, if wheres is 1, to where[0]. Several ranges are
 * one call of the driver and move in any order. They need CUDA 13 or later, and a stream other than
 * the legacy default one. */
int ta_managed_prefetch(void *const *p, const size_t *n, size_t count, const ta_location *where,
	size_t wheres, void *stream);

/* Discards the contents of ranges: none of them is moved, and until a range is written or
 * prefetched its contents are undefined. Needs CUDA 13 or later, and a stream other than the
 * legacy default one. */
int ta_managed_discard(void *const *p, const size_t *n, size_t count, void *stream);

/* Discards the contents of ranges and moves the ranges to their places, without copying. */
int ta_managed_discard_prefetch(void *const *p, const size_t *n, size_t count,
	const ta_location *where, size_t wheres, void *stream);

/* Asks the driver for an attribute of a range, which it knows if it is the same in all of it.
 * attribute is a CUmem_range_attribute, and out has room for count numbers. count is 1, except for
 * attribute 3:
 *
 *   1     read mostly: 0 or 1
 *   2, 4  preferred location, last prefetch: a device's ordinal, -1 the host, -2 none
 *   3     accessed by: up to count places as above, -2 in the rest
 *   5, 6  preferred location: kind (0 none), id; driver 12.2 or later
 *   7, 8  last prefetch: kind (0 none), id; driver 12.2 or later */
int ta_managed_get(const void *p, size_t n, int attribute, int *out, size_t count);

/* ---- Memory managers ----
 *
 * A memory manager shares the memory of one device between the components of a program, its
 * instances, after cubie's MemoryManager. Each instance has a part of the total: one that was
 * given to it (manual), or an equal share of what the manual ones leave (automatic). Instances
 * belong to groups, and the parts of a group are one budget:
 *
 *   cap of an instance             floor(proportion * total)
 *   available to a group, active   min(sum of the caps - sum of the live bytes, free)
 *   available to a group, passive  free
 *
 * When memory is short, idle instances are evicted, least recently used first. An instance is idle
 * when the stream that it used last has done its work. In active mode an allocation beyond its
 * group's budget evicts instances of the group. In both modes an allocation that the device has no
 * room for evicts instances of all groups of all managers of the device. It is refused if that is
 * not enough. Each instance is asked once for an allocation, and none if evicting all would not be
 * enough: such a request is refused at once.
 *
 * When a context ends, for example by cuDevicePrimaryCtxReset, its blocks are gone and must not be
 * freed.
 *
 * Functions return 0, or -1 with nothing changed and errno
 *   EINVAL   an argument is wrong
 *   ENOENT   the instance is not registered
 *   EDEADLK  in a signal handler that interrupted one of these functions on its own thread
 * or as each comment says. */
typedef struct ta_mm ta_mm;

enum { TA_MM_DEVICE, TA_MM_PINNED, TA_MM_MAPPED, TA_MM_MANAGED }; /* kinds of memory */
enum { TA_MM_PASSIVE, TA_MM_ACTIVE };                             /* modes */
#define TA_MM_ASK ((size_t)-1) /* as free: what the device has free under the limits */

/* Evicts an instance: it frees what it can with ta_mm_free. The allocating thread calls it,
 * without a lock. Allocations that it makes itself evict nobody. */
typedef void (*ta_mm_evict)(uint64_t instance, void *arg);

/* Creates a manager of total bytes of a device; 0 is all that the device has under the limits. name
 * is for reports. All names here have at most 47 bytes.
 * Returns NULL with errno
 *   ENODEV  there is no such device, or the program has not initialised CUDA
 *   ENOMEM  there is no memory */
ta_mm *ta_mm_create(int device, size_t total, const char *name);

/* Destroys a manager. EBUSY: it has live blocks, or some are being allocated. */
int ta_mm_destroy(ta_mm *m);

/* Sets the mode, TA_MM_PASSIVE or TA_MM_ACTIVE. */
int ta_mm_set_mode(ta_mm *m, int mode);

/* Registers an instance under a number of the program's choice. proportion is a part of the total,
 * 0 to 1, or negative for an automatic one. If evict is NULL, the library evicts the instance by
 * freeing its blocks; its evictions count that, and it must not free them any more.
 * Returns 0, or 1 if less than 5% is left for automatic instances and there are none yet; or -1
 * with
 *   EEXIST  the number is taken
 *   ERANGE  the manual parts would exceed 1
 *   ENOSPC  the manual parts would leave less than 5% for automatic instances
 *   ENOMEM  there is no memory */
int ta_mm_register(ta_mm *m, uint64_t instance, const char *name, const char *group,
	double proportion, ta_mm_evict evict, void *arg);

/* Removes an instance. EBUSY: it has blocks, or one is being allocated for it. */
int ta_mm_unregister(ta_mm *m, uint64_t instance);

/* Change how an instance gets its part, and its group. Results are those of ta_mm_register. */
int ta_mm_set_manual(ta_mm *m, uint64_t instance, double proportion);
int ta_mm_set_auto(ta_mm *m, uint64_t instance);
int ta_mm_set_group(ta_mm *m, uint64_t instance, const char *group);

/* Sets the sums of the manual and of the automatic parts. */
int ta_mm_pools(ta_mm *m, double *manual, double *automatic);

/* The figures of an instance. */
typedef struct {
	size_t size; /* set to sizeof(ta_mm_info) by the caller; filled up to it */
	double proportion;
	uint64_t cap, bytes_live, bytes_peak;
	uint64_t allocs, frees;
	uint64_t refused;   /* allocations that failed */
	uint64_t evictions; /* times that it was evicted */
	uint64_t last_used; /* the later, the larger */
	uint64_t manual;    /* 1: manual, 0: automatic */
	char name[48], group[48];
} ta_mm_info;
int ta_mm_get(ta_mm *m, uint64_t instance, ta_mm_info *out);

/* Sets out to the bytes that are available to a group.
 * Returns 0, or 1 if less than 5% of the group's budget is left. */
int ta_mm_available(ta_mm *m, const char *group, size_t free, size_t *out);

/* A requested array. An array with an axis of runs can be cut along it. */
typedef struct {
	size_t itemsize;
	const size_t *shape; /* ndim lengths */
	int ndim;
	int chunk_axis;  /* the axis of runs; an array without it, or with length 1, is not cut */
	int unchunkable; /* 1: it is not cut either */
	int kind;        /* TA_MM_... */
} ta_mm_request;

/* How arrays are cut. */
typedef struct {
	size_t size; /* set to sizeof(ta_mm_chunking) by the caller; filled up to it */
	size_t chunkable, unchunkable, available; /* bytes */
	size_t chunk_length, chunks;              /* runs of a chunk, number of chunks */
	uint32_t far_too_large;                   /* 1: above 20 times the free memory */
	uint32_t nearly_full;                     /* 1: below 5% of the group's budget is left */
} ta_mm_chunking;

/* Computes how many runs at a time the arrays of a group fit. If they take less than is available
 * it is all of them, else
 *
 *   chunk_length = floor(runs * (available - unchunkable) / chunkable)
 *   chunks       = ceil(runs / chunk_length)
 *
 * or fewer runs, until the chunk's arrays fit: an array whose axis has fewer runs is not cut in
 * proportion, and with TA_MM_ASK sizes count as the device heap rounds them.
 * Returns 0, or -1 with out filled and errno
 *   ENOTSUP  no array can be cut
 *   E2BIG    the arrays that cannot be cut do not fit
 *   ENOSPC   a single run does not fit */
int ta_mm_chunk(ta_mm *m, const char *group, size_t free, const ta_mm_request *requests, size_t n,
	size_t runs, ta_mm_chunking *out);

/* Allocates for an instance. Mapped memory has one address for host and device.
 * Returns NULL with errno
 *   ENOMEM  the budget, the device or the host has no room
 *   ENODEV  there is no such device or no CUDA */
void *ta_mm_alloc(ta_mm *m, uint64_t instance, size_t bytes, int kind, void *stream);

/* Frees a block after the work of stream, and of the stream that its instance used last. Memory
 * other than the device's waits for both. NULL is accepted. EINVAL: p is not a block of the
 * manager. */
int ta_mm_free(ta_mm *m, void *p, void *stream);

/* Queues what an instance wants when its group is allocated for next, of so many runs. It replaces
 * what the instance queued before. At most 64 arrays of at most 32 dimensions. EBUSY: its queue is
 * being allocated, and it was not told yet. */
int ta_mm_queue(ta_mm *m, uint64_t instance, const ta_mm_request *requests, size_t n, size_t runs);

/* Tells an instance that its group was allocated for. blocks[i] is the block of the i-th array
 * that it queued, NULL for an array without bytes. n is 0 if it queued none. chunking is the same
 * for the whole group. */
typedef void (*ta_mm_ready)(
	uint64_t instance, const ta_mm_chunking *chunking, void *const *blocks, size_t n, void *arg);
int ta_mm_on_ready(ta_mm *m, uint64_t instance, ta_mm_ready ready, void *arg);

/* Allocates all that the instances of a group have queued, cut as ta_mm_chunk computes, and tells
 * each member. There are as many runs as the longest queue has. No chunk of an array is longer
 * than its axis. out may be NULL.
 *
 * Before anything is cut, idle instances that have not queued for the group are evicted: members
 * of the group where its budget is short; where the device is short and free is TA_MM_ASK,
 * instances of all groups of all managers of the device. Where memory is refused all the same, the
 * chunk is shortened, down to one run.
 *
 * Returns 0, or -1 with nothing allocated, the queues kept, and errno as of ta_mm_chunk and
 * ta_mm_alloc, or
 *   EBUSY  a member is being allocated for already, and was not told yet */
int ta_mm_allocate_queue(
	ta_mm *m, uint64_t instance, size_t free, void *stream, ta_mm_chunking *out);

/* Which instances were asked already; zero at first. */
typedef struct {
	uint64_t after, until;
} ta_mm_asked;

/* Evicts the least recently used idle instance: of the group of an instance or, if everywhere is
 * not 0, of all groups of all managers of the device, if it has memory of it. Instances that have
 * queued for the group, are held, or were asked already are not asked.
 * Returns 1 if one has less than before, 0 if nobody is left to ask, or if the caller is an
 * instance that is being evicted itself. */
int ta_mm_ask_idle(ta_mm *m, uint64_t instance, int everywhere, ta_mm_asked *asked);

/* Holds an instance (on is 1) or releases it (0). A held instance is not evicted, and its
 * ta_mm_alloc evicts nobody: the caller allocates for it, and calls ta_mm_ask_idle. EINVAL: it is
 * not held. */
int ta_mm_hold(ta_mm *m, uint64_t instance, int on);

/* Notes that the instance uses its memory on the stream. */
int ta_mm_use(ta_mm *m, uint64_t instance, void *stream);

/* Counts bytes that an instance has from elsewhere or, if negative, no longer has. It is not
 * refused for want of room. ERANGE: the instance does not have so many from elsewhere. */
int ta_mm_charge(ta_mm *m, uint64_t instance, ssize_t bytes);

#ifdef __cplusplus
}
#endif
#endif
