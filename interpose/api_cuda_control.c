// ta_cuda_configure and its like: changes to the device heap while the program runs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include "cuda_driver.h"
#include "boot.h"
#include "manager.h"
#include "exports.h"
#include "tieralloc.h"

typedef struct ta_cuda_figures ta_cuda_figures;

// How a value is converted for the heap.
enum scale { AS_IT_IS, NEGATIVE_IS_NONE, FRACTION };

static const struct key {
	char name[24];
	uint64_t number;
	enum scale scale;
} keys[] = {
	{"segment_size", TA_CUDA_CONFIG_SEGMENT_SIZE, AS_IT_IS},
	{"cache_limit", TA_CUDA_CONFIG_CACHE_LIMIT, NEGATIVE_IS_NONE},
	{"stream_local", TA_CUDA_CONFIG_STREAM_LOCAL, AS_IT_IS},
	{"global", TA_CUDA_CONFIG_GLOBAL, NEGATIVE_IS_NONE},
	{"coalescing", TA_CUDA_CONFIG_COALESCING, AS_IT_IS},
	{"coalescing_threshold", TA_CUDA_CONFIG_THRESHOLD, FRACTION},
	{"strategy", TA_CUDA_CONFIG_STRATEGY, AS_IT_IS},
	{"peak", TA_CUDA_CONFIG_PEAK, AS_IT_IS},
	{"trace", TA_CUDA_CONFIG_TRACE, AS_IT_IS},
};

// Converts the value for the heap, or returns 0 if it is out of range.
static int scaled(enum scale s, double value, uint64_t *out)
{
	const double most = 9e18;
	if (s == NEGATIVE_IS_NONE && value < 0) {
		*out = (uint64_t)1 << 63;
		return 1;
	}
	if (!(value >= 0 && value < most))
		return 0;
	*out = (uint64_t)(s == FRACTION ? value * 65536 : value);
	return s == FRACTION || (double)*out == value;
}

EXPORT int ta_cuda_configure(int device, const char *key, double value)
{
	uint64_t v;
	for (size_t i = 0; key != NULL && i < sizeof keys / sizeof *keys; i++)
		if (ta_same(keys[i].name, key) && scaled(keys[i].scale, value, &v) && !ta_flags.CudaOff &&
			!ta_flags.Disabled &&
			ta_go_cuda_configure(
				ta_token(), device < 0 ? UINTPTR_MAX : (uintptr_t)device, keys[i].number, v))
			return 0;
	return errno = EINVAL, -1;
}

EXPORT size_t ta_cuda_trace(int device, char *buf, size_t n)
{
	if (device < 0 || ta_flags.CudaOff || ta_flags.Disabled)
		return errno = ENODEV, 0;
	return ta_go_cuda_history(ta_token(), (uintptr_t)device, (uintptr_t)buf, n);
}

TA_CHECK_CUDA_STATS;

EXPORT int ta_cuda_get_stats(int device, ta_cuda_stats *out)
{
	ta_cuda_figures figures = {0};
	if (out == NULL || out->size < sizeof out->size)
		return errno = EINVAL, -1;
	if (ta_mode == TA_UNBOOTED)
		ta_boot();
	if (device < 0 || ta_flags.CudaOff || ta_flags.Disabled ||
		!ta_go_cuda_figures(ta_token(), (uintptr_t)device, (uintptr_t)&figures))
		return errno = ENODEV, -1;
	ta_mm_fill(out, &figures, sizeof figures);
	return 0;
}

EXPORT void *ta_cuda_torch_malloc(ssize_t size, int device, void *stream)
{
	void *p = ta_cuda_malloc(size, device, stream);
	if (p == NULL && size > 0) {
		// Python loads libstdc++ for its modules only, so a plain search may miss it.
		void *cxx = dlopen("libstdc++.so.6", RTLD_NOLOAD | RTLD_LAZY);
		void (*throws)(
			void) = cxx != NULL ? (void (*)(void))dlsym(cxx, "_ZSt17__throw_bad_allocv") : NULL;
		if (throws != NULL)
			throws();
	}
	return p;
}
