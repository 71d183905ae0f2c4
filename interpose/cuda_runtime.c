// cudaMalloc and cudaFree of a CUDA runtime that is a shared library. They bypass the runtime and
// call the device heap directly. After a failure the runtime's own function reports the error and
// keeps it for cudaGetLastError.
#include "cuda_driver.h"

// Whether the calls of a runtime may bypass it. Its first calls go through the runtime and show
// whether they may.
enum { UNKNOWN, LONG, SHORT };

struct runtime {
	CUresult (*malloc)(void **, size_t);
	CUresult (*free)(void *);
	uint64_t way;
	uint64_t unloads; // ta_unloads before the look-up
};

// A cache of callers' runtimes by return address: SITES / WAYS sets of WAYS entries each. It is
// valid while ta_unloads equals unloads, which is 0 while the cache is cleared. Each site is one
// word: the address, and the runtime's number above it.
enum { SITES = 4096, WAYS = 4, RUNTIMES = 16, ADDRESS_BITS = 48 };
static const uint64_t address_mask = ((uint64_t)1 << ADDRESS_BITS) - 1;
static struct {
	uint64_t unloads, sites[SITES];
	struct runtime runtimes[RUNTIMES];
	char busy; // a thread writes
} known;

static inline uint64_t *set_of(uint64_t caller)
{
	const uint64_t golden = 0x9E3779B97F4A7C15; // Fibonacci hashing (Knuth 6.4)
	return &known.sites[(caller * golden >> 32) % (SITES / WAYS) * WAYS];
}

// Takes no lock. The values are valid if unloads has not changed after they were read.
static inline int recall(uint64_t caller, struct runtime *r)
{
	uint64_t at = __atomic_load_n(&known.unloads, __ATOMIC_ACQUIRE);
	if (UNLIKELY(at != __atomic_load_n(&ta_unloads, __ATOMIC_ACQUIRE)))
		return 0;
	const uint64_t *set = set_of(caller);
	for (int i = 0; i < WAYS; i++) {
		uint64_t site = __atomic_load_n(&set[i], __ATOMIC_ACQUIRE);
		if ((site & address_mask) != caller)
			continue;
		const struct runtime *k = &known.runtimes[(site >> ADDRESS_BITS) % RUNTIMES];
		r->malloc = __atomic_load_n(&k->malloc, __ATOMIC_RELAXED);
		r->free = __atomic_load_n(&k->free, __ATOMIC_RELAXED);
		r->way = __atomic_load_n(&k->way, __ATOMIC_RELAXED);
		r->unloads = at;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		return __atomic_load_n(&known.unloads, __ATOMIC_RELAXED) == at;
	}
	return 0;
}

// Clears the cache. An object may have been unloaded, so all entries are out of date.
static void forget(uint64_t unloads)
{
	__atomic_store_n(&known.unloads, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (int i = 0; i < SITES; i++)
		__atomic_store_n(&known.sites[i], 0, __ATOMIC_RELAXED);
	for (int i = 0; i < RUNTIMES; i++) {
		__atomic_store_n(&known.runtimes[i].malloc, NULL, __ATOMIC_RELAXED);
		__atomic_store_n(&known.runtimes[i].way, UNKNOWN, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&known.unloads, unloads, __ATOMIC_RELEASE);
}

// Writers never wait. A writer that meets another, or whose look-up is out of date, changes
// nothing.
static int write_begin(uint64_t unloads)
{
	if (__atomic_test_and_set(&known.busy, __ATOMIC_ACQUIRE))
		return 0;
	if (__atomic_load_n(&ta_unloads, __ATOMIC_ACQUIRE) == unloads)
		return 1;
	__atomic_clear(&known.busy, __ATOMIC_RELEASE);
	return 0;
}

static void write_end(void) { __atomic_clear(&known.busy, __ATOMIC_RELEASE); }

// The entry of the runtime, or a free one, or NULL. If a runtime has no entry, its callers are
// looked up at each call, and go through the runtime.
static struct runtime *place_of(const struct runtime *r)
{
	for (int i = 0; i < RUNTIMES; i++) {
		struct runtime *k = &known.runtimes[i];
		if (k->malloc == NULL || (k->malloc == r->malloc && k->free == r->free))
			return k;
	}
	return NULL;
}

// The entry for a caller in its set: its own, an empty one, or any.
static uint64_t *site_of(uint64_t caller)
{
	uint64_t *set = set_of(caller), *empty = NULL;
	for (int i = 0; i < WAYS; i++) {
		if ((set[i] & address_mask) == caller)
			return &set[i];
		if (set[i] == 0)
			empty = &set[i];
	}
	return empty != NULL ? empty : &set[(caller >> 2) % WAYS];
}

static void note(uint64_t caller, struct runtime *r)
{
	if (caller > address_mask || !write_begin(r->unloads))
		return;
	if (known.unloads != r->unloads)
		forget(r->unloads);
	struct runtime *k = place_of(r);
	if (k != NULL) {
		r->way = k->way;
		__atomic_store_n(&k->free, r->free, __ATOMIC_RELAXED);
		__atomic_store_n(&k->malloc, r->malloc, __ATOMIC_RELAXED);
		__atomic_store_n(site_of(caller), caller | (uint64_t)(k - known.runtimes) << ADDRESS_BITS,
			__ATOMIC_RELEASE);
	}
	write_end();
}

static NOINLINE void look(void *caller, struct runtime *r)
{
	*r = (struct runtime){.unloads = __atomic_load_n(&ta_unloads, __ATOMIC_ACQUIRE)};
	r->malloc = ta_cuda_runtime_symbol("cudaMalloc", caller);
	r->free = ta_cuda_runtime_symbol("cudaFree", caller);
	if (r->malloc != NULL && r->free != NULL)
		note((uint64_t)caller, r);
}

// Called once a call of the runtime has reached the library's driver functions. If another library
// interposes dlsym before this one, calls do not reach it: the driver would get this library's
// blocks to free, so calls continue to go through the runtime. Only from version 12.0 on does
// cudaSetDevice make a context current at once. In older versions the current context may be
// another device's.
static NOINLINE void learn(const struct runtime *r)
{
	int version = 0;
	CUresult (*get)(int *) = ta_cuda_symbol_beside((void *)r->malloc, "cudaRuntimeGetVersion");
	if ((get != NULL && get(&version) != CUDA_SUCCESS) || !write_begin(r->unloads))
		return;
	struct runtime *k = known.unloads == r->unloads ? place_of(r) : NULL;
	if (k != NULL && k->malloc != NULL)
		__atomic_store_n(&k->way, version >= 12000 ? SHORT : LONG, __ATOMIC_RELAXED);
	write_end();
}

// The runtime of the caller, and whether its calls may bypass it. Then *current is the context.
static inline int served(void *caller, struct runtime *r, CUcontext *current)
{
	int on = ta_cuda_serves(current);
	if (UNLIKELY(!recall((uint64_t)caller, r)))
		look(caller, r);
	return r->way == SHORT && on && *current != NULL;
}

static CUresult long_malloc(const struct runtime *r, void **out, size_t n)
{
	if (r->malloc == NULL)
		return CUDA_RUNTIME_INSUFFICIENT_DRIVER;
	ta_cuda_reached = 0;
	CUresult e = r->malloc(out, n);
	if (r->way == UNKNOWN && ta_cuda_reached)
		learn(r);
	return e;
}

static CUresult long_free(const struct runtime *r, void *p)
{
	if (r->free == NULL)
		return CUDA_RUNTIME_INSUFFICIENT_DRIVER;
	ta_cuda_reached = 0;
	CUresult e = r->free(p);
	if (r->way == UNKNOWN && ta_cuda_reached)
		learn(r);
	return e;
}

struct malloc_call {
	struct runtime runtime;
	void *got;
	size_t n;
	int called;
};

// Calls the runtime's own function. The library does not serve its call of the driver.
static CUresult call_malloc(ta_cuda_request *r, void *args)
{
	struct malloc_call *a = args;
	ta_cuda_passing = 1;
	CUresult e = a->runtime.malloc(&a->got, a->n);
	ta_cuda_passing = 0;
	a->called = 1;
	if (e == CUDA_SUCCESS)
		r->Value = (uint64_t)a->got;
	return e;
}

// After a failure of the heap, the runtime's function gets the error from its call of the driver.
EXPORT CUresult cudaMalloc(void **out, size_t n)
{
	CUcontext current;
	CUdeviceptr p;
	struct malloc_call a;
	if (!served(CALLER, &a.runtime, &current) || out == NULL || n == 0)
		return long_malloc(&a.runtime, out, n);
	a.n = n;
	a.called = 0;
	CUresult e = ta_cuda_alloc(&p, n, current, CALLER, call_malloc, &a);
	if (e == CUDA_SUCCESS) {
		*out = (void *)p;
		return CUDA_SUCCESS;
	}
	if (a.called)
		return e;
	ta_cuda_answer = e;
	e = a.runtime.malloc(out, n);
	ta_cuda_answer = CUDA_SUCCESS;
	return e;
}

struct free_call {
	struct runtime runtime;
	void *p;
	int called;
};

static CUresult call_runtime_free(ta_cuda_request *r, void *args)
{
	struct free_call *a = args;
	(void)r;
	ta_cuda_passing = 1;
	CUresult e = a->runtime.free(a->p);
	ta_cuda_passing = 0;
	a->called = 1;
	return e;
}

EXPORT CUresult cudaFree(void *p)
{
	CUcontext current;
	struct free_call a;
	if (!served(CALLER, &a.runtime, &current) || p == NULL)
		return long_free(&a.runtime, p);
	a.p = p;
	a.called = 0;
	CUresult e = ta_cuda_free_block((CUdeviceptr)p, current, call_runtime_free, &a);
	if (e == CUDA_SUCCESS || a.called)
		return e;
	ta_cuda_answer = e;
	e = a.runtime.free(p);
	ta_cuda_answer = CUDA_SUCCESS;
	return e;
}
