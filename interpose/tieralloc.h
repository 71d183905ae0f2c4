/* tieralloc.h - the C interface of libtieralloc.so.
 *
 * A preloaded program needs no header. Include this one to choose the tier of a block, to read
 * statistics, to allocate device memory in the order of a CUDA stream, or to divide a device
 * between the components of a program. Link with -ltieralloc, preload the library, or load it with
 * dlopen.
 *
 * The following holds for every function whose comment says nothing else:
 *
 *   Threads  Any thread may call it whenever the thread may call malloc. Do not call it in a
 *            signal handler.
 *   Errors   On failure it sets errno to one of the values that its comment lists.
 *   Units    Sizes are in bytes. Names that end in _ns are times in nanoseconds.
 *
 * docs/configuration.md describes the settings of the tiers. */
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

/* ---- Host memory ----
 *
 * A hint chooses the tier of a block, and ta_move changes it:
 *
 *   double *table = ta_alloc(bytes, TA_HOT);
 *   if (table == NULL)
 *       return errno;
 *   use(table);
 *   double *moved = ta_move(table, TA_SLOW);
 *   if (moved != NULL)
 *       table = moved;
 *   ta_free(table); */

/* A tier is a set of NUMA nodes with memory of one speed. */
typedef enum { TA_FAST, TA_NORMAL, TA_SLOW } ta_tier;

/* A hint tells how a block will be used. The library derives the tier from it:
 *
 *   TA_DEFAULT      the hint of the calling thread
 *   TA_HOT          the fast tier, up to its hard cap; demoted last
 *   TA_WARM         the normal tier
 *   TA_COLD         the slow tier
 *   TA_PIN_FAST     the fast tier permanently, or the allocation fails
 *   TA_PREFER_FAST  the fast tier; first to be rerouted or demoted
 *
 * Tiers and hints have the same numbers as in TierAlloc (tieralloc_compat.h). */
typedef enum { TA_DEFAULT, TA_HOT, TA_WARM, TA_COLD, TA_PIN_FAST, TA_PREFER_FAST } ta_hint;

/* Allocates bytes with a hint. The block is aligned as a block of malloc, and its contents are
 * undefined. Free it with ta_free, or with free if the library is preloaded or linked. With
 * TA_DISABLE=1 libc's malloc serves the call.
 * Returns the block, or NULL with errno
 *   ENOMEM  no tier that the hint allows has room under its caps, or the system has no memory
 *   EINVAL  hint is not a ta_hint */
void *ta_alloc(size_t bytes, ta_hint hint);

/* Sets the hint of the calling thread. It applies to malloc and related functions unless a rule of
 * TA_RULES matches the request. The initial value is TA_DEFAULT: the thread follows the default of
 * the process. A function can set the hint for the calls that it makes:
 *
 *   ta_hint before = ta_set_hint(TA_COLD);
 *   read_archive();
 *   ta_set_hint(before);
 *
 * Returns the previous hint, or (ta_hint)-1 with errno EINVAL if hint is not a ta_hint. */
ta_hint ta_set_hint(ta_hint hint);

/* Sets the default hint of the process, for all threads without a hint of their own. The setting
 * TA_DEFAULT_HINT gives the initial value, and TA_DEFAULT restores it. The calling thread and new
 * threads follow a change at once. Another thread first uses up the blocks that its heap caches.
 * Returns the previous default, or (ta_hint)-1 with errno EINVAL if hint is not a ta_hint. */
ta_hint ta_set_default_hint(ta_hint hint);

/* Returns the tier of the first byte of the block at p as a ta_tier, or -1 with errno EINVAL if p
 * is not a block of this library. */
int ta_tier_of(const void *p);

/* Counts the bytes of a block by tier. A block that is larger than the room in its tier may lie in
 * two tiers, with its first part in the faster one. The function looks at n bytes from offset on,
 * and sets bytes[t] to the number of them in tier t. Bytes beyond the end of the block
 * (malloc_usable_size) do not count. Offset 0 and n SIZE_MAX cover the whole block.
 * Returns 0, or -1 with errno EINVAL if p is not a block of this library or bytes is NULL. */
int ta_tier_of_range(const void *p, size_t offset, size_t n, size_t bytes[3]);

/* Moves a block and its contents to another tier. A block above 256 KiB keeps its address (above
 * 4 MiB in a tier with huge pages). A smaller block is copied, and the old one is freed. No thread
 * may free or reallocate the block during the call, nor write to one that is copied.
 * Returns the address of the block. Otherwise leaves the block as it is and returns NULL with errno
 *   EINVAL  p is not a block of this library, or dst is not a ta_tier
 *   EPERM   the block is TA_PIN_FAST
 *   ENOMEM  the tier has no room under its hard cap, or there is no memory
 *   EBUSY   the kernel would not move one of its pages, or another thread is moving it */
void *ta_move(void *p, ta_tier dst);

/* Frees a block of ta_alloc; does nothing if p is NULL. If the library was loaded with dlopen and p
 * is a block of the program's own malloc, the program's own free gets it. */
void ta_free(void *p);

/* ---- Statistics ---- */

/* The figures of one tier. A block enters a tier when it is allocated there or moved in. It leaves
 * the tier when it is freed there or moved out. The counts of entered and left blocks and bytes
 * never fall. Live blocks have bytes_entered - bytes_left bytes. bytes_current is the charge of the
 * tier in whole spans, and bytes_peak is the maximum of it. */
typedef struct {
	uint64_t blocks_entered, blocks_left, bytes_entered, bytes_left;
	uint64_t bytes_current, bytes_peak, simulated_wait_ns;
} ta_tier_stats;

/* The figures of this process. Blocks and bytes are exact if no other thread allocates or frees
 * meanwhile. Bytes are rounded up to size classes. Peaks count whole spans. */
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

/* Fills out with the figures of this process, up to the size that the caller states, and sets
 * out->size to the size that the library knows:
 *
 *   ta_stats s = {.size = sizeof s};
 *   if (ta_get_stats(&s) == 0)
 *       show(s.bytes_live, s.blocks_live);
 *
 * Returns 0, or -1 with errno
 *   EINVAL  out is NULL, or out->size is below 16 or above 4096
 *   ENOMEM  the system has no memory */
int ta_get_stats(ta_stats *out);

/* Writes the JSON report (docs/stats.schema.json) to buf as snprintf does: at most n bytes with the
 * final zero. The bytes of a tier on each node are an estimate from a sample of its pages. The
 * report of a forked child whose counts begin at the fork omits them.
 * Returns the length of the whole report without the final zero, or 0 with errno ENOMEM. */
size_t ta_stats_json(char *buf, size_t n);

enum {
	TA_STATS_EXACT_NODES = 1 /* asks for the node of every page: up to 0.1 s for each GiB */
};

/* Writes the JSON report as ta_stats_json does, with flags of the enum above.
 * Returns what ta_stats_json returns, or 0 with errno EINVAL for an unknown flag. */
size_t ta_stats_json_with(char *buf, size_t n, unsigned flags);

/* Writes the JSON report to a file with mode 0600. The file appears whole or not at all.
 * Returns 0, or -1 with the errno of the system call that failed. */
int ta_stats_write(const char *path);

/* ---- Device memory in the order of CUDA streams ----
 *
 * The program must have loaded and initialised CUDA. device is the ordinal of the driver. stream is
 * a cudaStream_t or CUstream; NULL is the legacy default stream. The memory belongs to the primary
 * context of the device, which the library retains for the life of the process. ta_cuda_malloc and
 * ta_cuda_free have the signatures of PyTorch's pluggable allocator. A block may be reused on its
 * stream without waiting:
 *
 *   float *tmp = ta_cuda_malloc(n * sizeof *tmp, device, stream);
 *   launch(tmp, n, stream);
 *   ta_cuda_free(tmp, n * sizeof *tmp, device, stream); */

/* Allocates size bytes. Work on stream may use them at once. Work on another stream may use them
 * after that stream has waited for this one.
 * Returns the block, NULL for a size of 0, or NULL with errno
 *   ENOMEM  the device has no memory under its limits
 *   ENODEV  there is no such device or no CUDA */
void *ta_cuda_malloc(ssize_t size, int device, void *stream);

/* Frees a block once all work that stream was given before this call is done; does nothing if p is
 * NULL. It ignores size. This function also frees a block of cudaMalloc, and cudaFree frees a block
 * of ta_cuda_malloc.
 * On success errno is unchanged. On failure it is
 *   EINVAL  p is not a block in use. Nothing is freed, and the log has a line. The report counts
 *           the call in frees_invalid, or in frees_unknown if the address is not the library's
 *   ENODEV  there is no CUDA
 *   EIO     the device has failed */
void ta_cuda_free(void *p, ssize_t size, int device, void *stream);

/* Notes that another stream uses a block. After the block is freed, it is not reused until all work
 * that this stream was given before the free is done. Memory of others is ignored.
 * On success errno is unchanged. On failure it is
 *   EINVAL  p was freed, or points into a block
 *   ENOMEM  the system has no memory to note the stream */
void ta_cuda_record_stream(void *p, void *stream);

/* Allocates n blocks, of sizes[i] bytes each, and stores their addresses in out[i]. It allocates
 * all of them or none. Returns 0, or -1 with an errno of ta_cuda_malloc, or EINVAL for a wrong
 * argument. */
int ta_cuda_malloc_batch(int device, void *stream, const size_t *sizes, void **out, int n);

/* Fills the device's cache with counts[i] blocks of sizes[i] bytes for each i < n.
 * Returns 0, or -1 with errno EINVAL, ENOMEM or ENODEV. */
int ta_cuda_warmup(int device, const size_t *sizes, const int *counts, int n);

/* Return cached memory to the driver. ta_cuda_trim returns that of all devices. ta_cuda_trim_to
 * returns that of one device beyond the given number of bytes.
 * ta_cuda_trim_to returns 0, or -1 with errno ENODEV if the device was not used. */
void ta_cuda_trim(void);
int ta_cuda_trim_to(int device, size_t bytes);

/* Merges neighbouring free blocks of a device, or of all devices if device is -1.
 * Returns 0, or -1 with errno ENODEV if the device was not used. */
int ta_cuda_coalesce(int device);

/* Changes a setting of a device, or of all devices if device is -1, while the program runs. The
 * keys are:
 *
 *   segment_size          bytes of a new segment: a multiple of 2 MiB, up to 64 GiB
 *   cache_limit           bytes of free blocks to keep; negative: no limit
 *   stream_local          number of free blocks of each stream to keep unmerged
 *   global                number of blocks to keep that are free for all streams. Beyond it,
 *                         segments of one free block return to the driver; negative: no limit
 *   coalescing            1: merge freed blocks with their neighbours at once
 *   coalescing_threshold  0 to 1: merge freed blocks when a request finds none of its size and the
 *                         fragmentation is above this
 *   strategy              0: best fit, 1: first fit
 *   peak                  resets the peaks of the statistics; the value is ignored
 *   trace                 1: records allocations and frees from now on, 0: stops recording
 *
 * Returns 0, or -1 with errno EINVAL for an unknown key or a wrong value, or if the library does
 * not serve devices (TA_CUDA=0, TA_DISABLE=1). */
int ta_cuda_configure(int device, const char *key, double value);

/* The figures of a device, under their names in the report. ta_cuda_get_stats takes about a
 * microsecond, a report a thousand times as long. */
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

/* Fills out with the figures of a device. Until the device is used, all but the settings are 0.
 * Returns 0, or -1 with errno
 *   EINVAL  out->size is wrong
 *   ENODEV  there is no such device, or devices are not served (TA_CUDA=0, TA_DISABLE=1) */
int ta_cuda_get_stats(int device, ta_cuda_stats *out);

/* Writes the recorded events of a device to buf as snprintf does: a header, then one line for each
 * event, oldest first. The columns are those of RMM's replay benchmark. The library keeps the last
 * 131072 events of all devices. The setting trace of ta_cuda_configure starts the recording.
 * Returns the length of the whole text, or 0 with errno ENODEV if there is no such device. */
size_t ta_cuda_trace(int device, char *buf, size_t n);

/* Allocates as ta_cuda_malloc does, but throws std::bad_alloc where that returns NULL for a
 * positive size. PyTorch needs this because it does not check for NULL. In a process without the
 * C++ library it returns NULL. */
void *ta_cuda_torch_malloc(ssize_t size, int device, void *stream);

/* A pool keeps the memory of CUDA graphs separate, because a replayed graph writes to the same
 * addresses again. Between ta_cuda_pool_begin and ta_cuda_pool_end, all blocks that ta_cuda_malloc
 * allocates on the device belong to the pool (id0, id1), except those of the per-thread default
 * stream. They come from the pool, and return to it until ta_cuda_pool_release. filter is ignored.
 */
void ta_cuda_pool_begin(int device, uint64_t id0, uint64_t id1, void *filter);
void ta_cuda_pool_end(int device, uint64_t id0, uint64_t id1);
void ta_cuda_pool_release(int device, uint64_t id0, uint64_t id1);

/* A region is device memory that can sleep: it goes back to the driver, and its blocks keep their
 * addresses, so that CUDA graphs and pointers are valid once it is awake again. Between
 * ta_cuda_region_begin and ta_cuda_region_end, all blocks that ta_cuda_malloc allocates on the
 * device belong to the region, except those of the per-thread default stream. name has 1 to 15
 * bytes. Regions nest.
 *
 * ta_cuda_sleep waits for the device, copies the region's contents to page-locked memory of the
 * host if keep is not 0, and returns its device memory to the driver. Until ta_cuda_wake has
 * returned 0 nothing may use it, except that its blocks may be freed; the region gives no memory.
 * ta_cuda_wake maps memory at the same addresses, and copies back what was kept; without keep the
 * contents are undefined. A region that already sleeps, or is awake, is left as it is.
 *
 * They return 0, or -1 with errno, and nothing has changed then (EIO: contents may be lost):
 *   EINVAL   name is too long or empty, or no region of that name was begun
 *   ENOMEM   the host, or for ta_cuda_wake the device, has no memory
 *   EBUSY    a graph is being captured
 *   ENOTSUP  the driver cannot map memory at an address (or TA_CUDA_EXPANDABLE=0)
 *   ENODEV   there is no such device or no CUDA
 *   EIO      the driver has failed */
int ta_cuda_region_begin(int device, const char *name);
int ta_cuda_region_end(int device, const char *name);
int ta_cuda_sleep(int device, const char *name, int keep);
int ta_cuda_wake(int device, const char *name);

/* ---- Managed memory ----
 *
 * The host and the devices read and write managed memory. Its pages move to the place that uses
 * them, or to a place that the program advises or prefetches to. The driver keeps all state, and
 * the library passes calls on. So these functions work for all managed memory of the program,
 * whoever allocated it, even while the library is switched off. p and n are the address and the
 * bytes of a range within one allocation. On a thread without a current context a function uses the
 * context of the memory.
 *
 * Functions that return int return the driver's CUresult, among them:
 *     0  success
 *     1  (CUDA_ERROR_INVALID_VALUE) an argument is not among those listed here, or the range is
 *        not managed memory
 *     3  (CUDA_ERROR_NOT_INITIALIZED) there is no driver, or it is not initialised
 *   101  (CUDA_ERROR_INVALID_DEVICE) there is no such device, or it has no concurrent access to
 *        managed memory
 *   801  (CUDA_ERROR_NOT_SUPPORTED) the driver lacks the entry point */

/* A place for memory. kind is a CUmemLocationType. id is the ordinal of a device or the number of a
 * NUMA node; the other kinds ignore it. Nodes need a driver of 12.2 or later. */
enum { TA_AT_DEVICE = 1, TA_AT_HOST = 2, TA_AT_HOST_NUMA = 3, TA_AT_HOST_NUMA_CURRENT = 4 };
typedef struct {
	int kind, id;
} ta_location;

/* Allocates size bytes of managed memory in the primary context of the device, which the library
 * retains for the life of the process. The memory counts against the limits of the device, as that
 * of cuMemAllocManaged does.
 * Returns the block, or NULL with errno
 *   EINVAL   size is 0
 *   ENOMEM   the device has no memory under its limits
 *   ENODEV   there is no such device or no CUDA
 *   ENOTSUP  the device has no managed memory */
void *ta_managed_malloc(size_t size, int device);

/* Frees managed memory once all work that devices were given is done; does nothing if p is NULL. */
int ta_managed_free(void *p);

/* Tells the driver how a range will be used, and moves nothing. advice is a CUmem_advise. The three
 * that name a place use where; the others ignore it. */
enum {
	TA_SET_READ_MOSTLY = 1, /* each reader keeps a copy of what it reads */
	TA_UNSET_READ_MOSTLY = 2,
	TA_SET_PREFERRED_LOCATION = 3, /* any kind of place */
	TA_UNSET_PREFERRED_LOCATION = 4,
	TA_SET_ACCESSED_BY = 5, /* a device or the host: the range stays mapped there */
	TA_UNSET_ACCESSED_BY = 6
};
int ta_managed_advise(void *p, size_t n, int advice, ta_location where);

/* Moves count ranges to places, in the order of the stream (a CUstream or cudaStream_t). Range i is
 * the n[i] bytes at p[i]. It moves to where[i] or, if wheres is 1, to where[0]:
 *
 *   ta_location device = {TA_AT_DEVICE, 0};
 *   ta_managed_prefetch(&p, &n, 1, &device, 1, stream);
 *
 * The driver moves several ranges in one call and in any order. Several ranges need CUDA 13 or
 * later, and a stream other than the legacy default stream. */
int ta_managed_prefetch(void *const *p, const size_t *n, size_t count, const ta_location *where,
	size_t wheres, void *stream);

/* Discards the contents of ranges, so that the driver does not have to move them. The contents are
 * undefined until the range is written or prefetched. Needs CUDA 13 or later, and a stream other
 * than the legacy default stream. */
int ta_managed_discard(void *const *p, const size_t *n, size_t count, void *stream);

/* Discards the contents of ranges and moves the ranges to their places, without copying. */
int ta_managed_discard_prefetch(void *const *p, const size_t *n, size_t count,
	const ta_location *where, size_t wheres, void *stream);

/* Asks the driver for an attribute of a range. The driver knows the attribute if it is the same in
 * the whole range. attribute is a CUmem_range_attribute. out has room for count numbers; count is
 * 1, except for attribute 3:
 *
 *   1     read mostly: 0 or 1
 *   2, 4  preferred location, last prefetch: a device's ordinal, -1 the host, -2 none
 *   3     accessed by: up to count places as above, -2 in the rest
 *   5, 6  preferred location: kind (0 none), id; driver 12.2 or later
 *   7, 8  last prefetch: kind (0 none), id; driver 12.2 or later */
int ta_managed_get(const void *p, size_t n, int attribute, int *out, size_t count);

/* ---- Memory managers ----
 *
 * A memory manager divides the memory of one device between the components of a program, as cubie's
 * MemoryManager does. A component is an instance. Each instance has a part of the total. A manual
 * part is set by the program. The automatic parts are equal shares of the rest. Instances belong to
 * groups, and the parts of a group are one budget:
 *
 *   cap of an instance             floor(proportion * total)
 *   available to a group, active   min(sum of the caps - sum of the live bytes, free)
 *   available to a group, passive  free
 *
 * When memory is short, the manager evicts idle instances, least recently used first. An instance
 * is idle when the stream that it used last has done its work. In active mode an allocation beyond
 * the budget of its group evicts instances of the group. In both modes an allocation that the
 * device has no room for evicts instances of all groups of all managers of the device. The manager
 * refuses the allocation if that is not enough. An allocation evicts each instance at most once. If
 * evicting all would not be enough, the manager evicts none and refuses the allocation at once.
 *
 *   ta_mm *m = ta_mm_create(0, 0, "solver");
 *   ta_mm_register(m, 1, "mesh", "main", -1, NULL, NULL);
 *   void *p = ta_mm_alloc(m, 1, bytes, TA_MM_DEVICE, stream);
 *   ta_mm_free(m, p, stream);
 *
 * When a context ends, for example by cuDevicePrimaryCtxReset, its blocks end with it. Do not free
 * them.
 *
 * Functions return 0, or -1 with nothing changed and errno
 *   EINVAL   an argument is wrong
 *   ENOENT   the instance is not registered
 *   EDEADLK  in a signal handler that interrupted one of these functions on its own thread
 * or as each comment says. */
typedef struct ta_mm ta_mm;

enum { TA_MM_DEVICE, TA_MM_PINNED, TA_MM_MAPPED, TA_MM_MANAGED }; /* kinds of memory */
enum { TA_MM_PASSIVE, TA_MM_ACTIVE };                             /* modes */
#define TA_MM_ASK ((size_t)-1) /* for free: the free bytes of the device under its limits */

/* A callback that evicts an instance: it frees what it can with ta_mm_free. The thread that
 * allocates calls it and holds no lock. An allocation in the callback evicts no instance. */
typedef void (*ta_mm_evict)(uint64_t instance, void *arg);

/* Creates a manager of total bytes of a device. 0 stands for all memory of the device under its
 * limits. The name appears in reports. Names of managers, instances and groups have at most 47
 * bytes. Returns the manager, or NULL with errno ENODEV  there is no such device, or the program
 * has not initialised CUDA ENOMEM  there is no memory */
ta_mm *ta_mm_create(int device, size_t total, const char *name);

/* Destroys a manager. EBUSY: it has live blocks, or some are being allocated. */
int ta_mm_destroy(ta_mm *m);

/* Sets the mode, TA_MM_PASSIVE or TA_MM_ACTIVE. */
int ta_mm_set_mode(ta_mm *m, int mode);

/* Registers an instance under a number that the program chooses. proportion is its part of the
 * total, 0 to 1, or negative for an automatic part. If evict is NULL, the library evicts the
 * instance by freeing its blocks. Then its figure evictions rises, and the program must not free
 * those blocks again.
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

/* Give an instance a manual part, an automatic part, or another group. They return what
 * ta_mm_register returns. */
int ta_mm_set_manual(ta_mm *m, uint64_t instance, double proportion);
int ta_mm_set_auto(ta_mm *m, uint64_t instance);
int ta_mm_set_group(ta_mm *m, uint64_t instance, const char *group);

/* Stores the sum of the manual parts and the sum of the automatic parts, each 0 to 1. */
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

/* Stores in out the bytes that are available to a group.
 * Returns 0, or 1 if less than 5% of the group's budget is left. */
int ta_mm_available(ta_mm *m, const char *group, size_t free, size_t *out);

/* A requested array. An array with an axis of runs can be cut into chunks along that axis. */
typedef struct {
	size_t itemsize;
	const size_t *shape; /* ndim lengths */
	int ndim;
	int chunk_axis;  /* the axis of runs; an array without it, or of length 1, is not cut */
	int unchunkable; /* 1: never cut the array */
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

/* Computes how many runs of the arrays of a group fit at a time. If the arrays take less than is
 * available, all runs do. Otherwise
 *
 *   chunk_length = floor(runs * (available - unchunkable) / chunkable)
 *   chunks       = ceil(runs / chunk_length)
 *
 * and the function lowers chunk_length until the arrays of a chunk fit. They may not fit at first,
 * because an array whose axis has fewer runs is not cut in proportion, and because with TA_MM_ASK
 * sizes count as the device heap rounds them.
 * Returns 0, or -1 with out filled and errno
 *   ENOTSUP  no array can be cut
 *   E2BIG    the arrays that cannot be cut do not fit
 *   ENOSPC   a single run does not fit */
int ta_mm_chunk(ta_mm *m, const char *group, size_t free, const ta_mm_request *requests, size_t n,
	size_t runs, ta_mm_chunking *out);

/* Allocates bytes of a kind (TA_MM_DEVICE and so on) for an instance. Mapped memory has one address
 * for host and device.
 * Returns the block, or NULL with errno
 *   ENOMEM  the budget, the device or the host has no room
 *   ENODEV  there is no such device or no CUDA */
void *ta_mm_alloc(ta_mm *m, uint64_t instance, size_t bytes, int kind, void *stream);

/* Frees a block once stream, and the stream that its instance used last, have done their work; does
 * nothing if p is NULL. For pinned, mapped and managed memory the call itself waits for both.
 * EINVAL: p is not a block of the manager. */
int ta_mm_free(ta_mm *m, void *p, void *stream);

/* Queues the arrays that an instance wants from the next ta_mm_allocate_queue of its group, for the
 * given number of runs. They replace what the instance queued before. An instance queues at most 64
 * arrays of at most 32 dimensions. EBUSY: its queue is being allocated, and its ta_mm_ready was not
 * called yet. */
int ta_mm_queue(ta_mm *m, uint64_t instance, const ta_mm_request *requests, size_t n, size_t runs);

/* A callback that tells an instance that the queue of its group was allocated. blocks[i] is the
 * block of the i-th array that the instance queued, or NULL for an array of 0 bytes. n is 0 if it
 * queued none. chunking is the same for the whole group. ta_mm_on_ready sets the callback of an
 * instance. */
typedef void (*ta_mm_ready)(
	uint64_t instance, const ta_mm_chunking *chunking, void *const *blocks, size_t n, void *arg);
int ta_mm_on_ready(ta_mm *m, uint64_t instance, ta_mm_ready ready, void *arg);

/* Allocates all arrays that the instances of a group have queued, cut as ta_mm_chunk computes, and
 * calls the ta_mm_ready of each member. The number of runs is that of the longest queue. No chunk
 * of an array is longer than its axis. out may be NULL.
 *
 * Before it cuts an array, the function evicts idle instances that have not queued for the group.
 * If the budget of the group is short, these are members of the group. If the device is short and
 * free is TA_MM_ASK, these are instances of all groups of all managers of the device. If an
 * allocation is refused nevertheless, the function shortens the chunk, down to one run.
 *
 * Returns 0, or -1 with nothing allocated, the queues kept, and errno as of ta_mm_chunk and
 * ta_mm_alloc, or
 *   EBUSY  the queue of a member is being allocated already, and its ta_mm_ready was not called yet
 */
int ta_mm_allocate_queue(
	ta_mm *m, uint64_t instance, size_t free, void *stream, ta_mm_chunking *out);

/* Notes which instances ta_mm_ask_idle has asked already. Begin with zeros. */
typedef struct {
	uint64_t after, until;
} ta_mm_asked;

/* Evicts the least recently used idle instance. If everywhere is 0, it takes one of the group of
 * the given instance. Otherwise it takes one that has memory of the device, of any group of any
 * manager of the device. It passes over instances that have queued for the group, are held, or were
 * asked already. Returns 1 if an instance has less memory than before. Returns 0 if no instance is
 * left to ask, or if an instance that is being evicted makes the call. */
int ta_mm_ask_idle(ta_mm *m, uint64_t instance, int everywhere, ta_mm_asked *asked);

/* Holds an instance (on is 1) or releases it (0). A held instance is not evicted, and ta_mm_alloc
 * for it evicts no other: the caller does that with ta_mm_ask_idle. EINVAL: the instance to release
 * is not held. */
int ta_mm_hold(ta_mm *m, uint64_t instance, int on);

/* Notes that the instance uses its memory on the stream. The instance is idle once the stream has
 * done its work. */
int ta_mm_use(ta_mm *m, uint64_t instance, void *stream);

/* Charges an instance with bytes that it has from another allocator. Negative bytes take a charge
 * back. The call does not fail for lack of room. ERANGE: the instance is not charged with so many.
 */
int ta_mm_charge(ta_mm *m, uint64_t instance, ssize_t bytes);

#ifdef __cplusplus
}
#endif
#endif
