// The CUDA functions of the library without a device: blocks are numbers, and what was
// asked for is counted or can be asked for as text.

#include <errno.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include "tieralloc.h"

#define API __attribute__((visibility("default")))

static uint64_t next = 0x7f0000000000, limit = 1 << 30, live, peak, cached, released, merges,
				allocs, frees, hits, misses;
#define NONE (UINT64_C(1) << 63)
static struct {
	uint64_t stream_local, cache_limit, global_limit;
} knobs[3] = {{100, NONE, NONE}, {100, NONE, NONE}, {100, NONE, NONE}};
static char journal[65536], trace[65536] = "Thread,Action,Pointer,Size,Stream\n";
static int tracing, used;

#define NOTE(...) snprintf(journal + strlen(journal), sizeof journal - strlen(journal), __VA_ARGS__)
#define TRACE(...) \
	do { \
		if (tracing) \
			snprintf(trace + strlen(trace), sizeof trace - strlen(trace), __VA_ARGS__); \
	} while (0)

// What was asked of the library since the last call.
API const char *fake_journal(void)
{
	static char out[sizeof journal];
	memcpy(out, journal, sizeof out);
	journal[0] = 0;
	return out;
}

API void *ta_cuda_malloc(ssize_t size, int device, void *stream)
{
	if (device > 2)
		return errno = ENODEV, NULL;
	used = 1;
	allocs++;
	if (live + size > limit)
		return errno = ENOMEM, NULL;
	if (cached >= (uint64_t)size) {
		hits++;
		cached -= size;
	} else
		misses++;
	live += size;
	if (live > peak)
		peak = live;
	next += 1 << 20;
	TRACE("1,allocate,0x%lx,%zd,%lu\n", next, size, (unsigned long)stream);
	NOTE("malloc %zd %d %lu\n", size, device, (unsigned long)stream);
	return (void *)next;
}

API void ta_cuda_free(void *p, ssize_t size, int device, void *stream)
{
	if ((uint64_t)p % (1 << 20) != 0) {
		errno = EINVAL;
		return;
	}
	if ((uint64_t)p == 1 << 20) {
		errno = EIO;
		return;
	}
	frees++;
	live -= size;
	cached += size;
	TRACE("1,free,0x%lx,%zd,%lu\n", (unsigned long)p, size, (unsigned long)stream);
	NOTE("free %zd %d %lu\n", size, device, (unsigned long)stream);
}

// The thread's hint, and the one before; DEFAULT at first.
API ta_hint ta_set_hint(ta_hint hint)
{
	static _Thread_local ta_hint mine = TA_DEFAULT;
	ta_hint before = mine;
	mine = hint;
	return before;
}

API void ta_cuda_record_stream(void *p, void *stream)
{
	NOTE("record %d %lu\n", p != NULL, (unsigned long)stream);
}

API int ta_cuda_malloc_batch(int device, void *stream, const size_t *sizes, void **out, int n)
{
	NOTE("batch %d\n", n);
	for (int i = 0; i < n; i++)
		if ((out[i] = ta_cuda_malloc(sizes[i], device, stream)) == NULL)
			return errno = ENOMEM, -1;
	return 0;
}

API int ta_cuda_warmup(int device, const size_t *sizes, const int *counts, int n)
{
	for (int i = 0; i < n; i++) {
		NOTE("warmup %zu %d %d\n", sizes[i], counts[i], device);
		if (sizes[i] > limit)
			return errno = ENOMEM, -1;
		cached += sizes[i] * counts[i];
	}
	return 0;
}

API int ta_cuda_trim_to(int device, size_t bytes)
{
	NOTE("trim %zu %d\n", bytes, device);
	if (device != 0)
		return errno = device == 9 ? EIO : ENODEV, -1;
	if (cached > bytes) {
		released += cached - bytes;
		cached = bytes;
	}
	return 0;
}

API int ta_cuda_coalesce(int device)
{
	NOTE("coalesce %d\n", device);
	merges += 3;
	return 0;
}

API int ta_cuda_configure(int device, const char *key, double value)
{
	NOTE("configure %s %.17g %d\n", key, value, device);
	if (!(value < 9e18) || device > 2) // as the library
		return errno = EINVAL, -1;
	if (strcmp(key, "stream_local") == 0)
		knobs[device].stream_local = value;
	else if (strcmp(key, "global") == 0)
		knobs[device].global_limit = value < 0 ? NONE : (uint64_t)value;
	else if (strcmp(key, "cache_limit") == 0)
		knobs[device].cache_limit = value < 0 ? NONE : (uint64_t)value;
	else if (device != 0)
		return 0;
	else if (strcmp(key, "trace") == 0) {
		tracing = value != 0;
		strcpy(trace, "Thread,Action,Pointer,Size,Stream\n");
	} else if (strcmp(key, "peak") == 0)
		peak = live;
	else if (strcmp(key, "strategy") == 0) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

API size_t ta_cuda_trace(int device, char *buf, size_t n)
{
	(void)device;
	return snprintf(buf, n, "%s", trace);
}

// Of device 0, unless it was not used; the settings of all.
API int ta_cuda_get_stats(int device, ta_cuda_stats *out)
{
	NOTE("stats %d\n", device);
	if (device < 0 || device > 2 || out->size != sizeof *out)
		return errno = ENODEV, -1;
	*out = (ta_cuda_stats){sizeof *out, .stream_local = knobs[device].stream_local,
		.cache_limit = knobs[device].cache_limit, .global_limit = knobs[device].global_limit,
		.recording = device == 0 && tracing};
	if (device != 0 || !used)
		return 0;
	out->alloc_calls = allocs, out->free_calls = frees, out->hits_local = hits,
	out->misses = misses;
	out->bytes_live = live, out->bytes_peak = peak,
	out->bytes_reserved = out->bytes_current = live + cached;
	out->bytes_cached_local = cached, out->largest_free = cached - cached / 4;
	out->bytes_released = released, out->merges = merges, out->bytes_device = limit;
	return 0;
}

API size_t ta_stats_json(char *buf, size_t n)
{
	NOTE("json\n");
	if (!used)
		return snprintf(buf, n, "{}\n");
	return snprintf(buf, n,
		"{\"devices\": [{\"ordinal\": 3}, {\"ordinal\": 0, \"bytes_device\": %lu}]}\n", limit);
}

API void ta_cuda_pool_begin(int device, uint64_t a, uint64_t b, void *filter)
{
	NOTE("pool %d %lu %lu %d\n", device, a, b, filter != NULL);
}
API void ta_cuda_pool_end(int device, uint64_t a, uint64_t b) { NOTE("pool end\n"); }
API void ta_cuda_pool_release(int device, uint64_t a, uint64_t b) { NOTE("pool gone\n"); }
