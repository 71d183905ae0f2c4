// cudaMalloc and cudaFree of a CUDA runtime that is a shared library: a shorter way to
// what the runtime would come to by the driver's functions. Whatever goes wrong is left
// to the runtime's own function, which also keeps the error for cudaGetLastError.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include "cuda_driver.h"

// A function of ours is what a search of all that is loaded finds first.
static void *not_ours(void *f)
{
	Dl_info found, us;
	if (f == NULL || dladdr(f, &found) == 0 || dladdr((void *)ta_cuda_runtime_symbol, &us) == 0)
		return NULL;
	return found.dli_fbase != us.dli_fbase ? f : NULL;
}

// The function in an object and in what it needs.
static void *symbol_in(const char *object, const char *name)
{
	void *lib = dlopen(object, RTLD_NOLOAD | RTLD_LAZY);
	return lib != NULL ? not_ours(ta_dlsym(lib, name)) : NULL;
}

// The caller's own runtime comes first: a process may have several. One that is loaded
// for others alone (RTLD_LOCAL) is found by its name.
void *ta_cuda_runtime_symbol(const char *name, void *caller)
{
	Dl_info found;
	struct link_map *of = NULL;
	void *f = NULL;
	int saved = errno;
	if (dladdr1(caller, &found, (void **)&of, RTLD_DL_LINKMAP) != 0 && of != NULL && of->l_name[0] != 0)
		f = symbol_in(of->l_name, name);
	if (f == NULL)
		f = ta_dlsym(RTLD_NEXT, name);
	for (struct link_map *m = _r_debug.r_map; f == NULL && m != NULL; m = m->l_next)
		if (strstr(m->l_name, "libcudart.so") != NULL)
			f = symbol_in(m->l_name, name);
	errno = saved;
	return f;
}

struct runtime {
	CUresult (*malloc)(void **, size_t);
	CUresult (*free)(void *);
	int serves;
};

// What callers' runtimes were found to be, by return address.
enum { CALLERS = 64 };
static struct {
	void *caller;
	struct runtime runtime;
} callers[CALLERS];

static size_t place_of(void *caller) { return ((uintptr_t)caller ^ (uintptr_t)caller >> 6) % CALLERS; }

// Whether the runtime's own calls of the driver come to us. They do not where another
// library has taken dlsym over before us; then the driver would be given our blocks to free.
static int reaches_us(void *caller)
{
	size_t free, total;
	CUresult (*info)(size_t *, size_t *) = ta_cuda_runtime_symbol("cudaMemGetInfo", caller);
	ta_cuda_reached = 0;
	return info != NULL && info(&free, &total) == CUDA_SUCCESS && ta_cuda_reached;
}

// Only from version 12.0 on does cudaSetDevice make a context current at once; before, the
// one that is current may be another device's.
static int may_serve(void *caller)
{
	int version = 0;
	CUresult (*get)(int *) = ta_cuda_runtime_symbol("cudaRuntimeGetVersion", caller);
	return get != NULL && get(&version) == CUDA_SUCCESS && version >= 12000 && reaches_us(caller);
}

// A place is written once, before its caller is; those that find theirs taken look anew,
// and so do all until there is a context.
static NOINLINE struct runtime look(void *caller, CUcontext current)
{
	struct runtime r = {
		.malloc = ta_cuda_runtime_symbol("cudaMalloc", caller),
		.free = ta_cuda_runtime_symbol("cudaFree", caller),
	};
	if (r.malloc == NULL || r.free == NULL || current == NULL)
		return r;
	r.serves = may_serve(caller);
	void *none = NULL, *const writing = (void *)1;
	size_t i = place_of(caller);
	if (__atomic_compare_exchange_n(&callers[i].caller, &none, writing, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		callers[i].runtime = r;
		__atomic_store_n(&callers[i].caller, caller, __ATOMIC_RELEASE);
	}
	return r;
}

// The caller's runtime; it serves with a context that is current, in *current.
static struct runtime runtime_of(void *caller, CUcontext *current)
{
	int on = ta_cuda_serves(current);
	size_t i = place_of(caller);
	struct runtime r = LIKELY(__atomic_load_n(&callers[i].caller, __ATOMIC_ACQUIRE) == caller)
				   ? callers[i].runtime
				   : look(caller, *current);
	r.serves &= on && *current != NULL;
	return r;
}

struct malloc_call {
	struct runtime runtime;
	void *got;
	size_t n;
	int called;
};

// The runtime's own function, whose call of the driver is then not ours to serve.
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

EXPORT CUresult cudaMalloc(void **out, size_t n)
{
	CUcontext current;
	CUdeviceptr p;
	struct malloc_call a = {.runtime = runtime_of(CALLER, &current), .n = n};
	if (a.runtime.malloc == NULL)
		return CUDA_RUNTIME_INSUFFICIENT_DRIVER;
	if (!a.runtime.serves || out == NULL || n == 0)
		return a.runtime.malloc(out, n);
	CUresult e = ta_cuda_alloc(&p, n, current, CALLER, call_malloc, &a);
	if (e != CUDA_SUCCESS)
		return a.called ? e : a.runtime.malloc(out, n);
	*out = (void *)p;
	return CUDA_SUCCESS;
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
	struct free_call a = {.runtime = runtime_of(CALLER, &current), .p = p};
	if (a.runtime.free == NULL)
		return CUDA_RUNTIME_INSUFFICIENT_DRIVER;
	if (!a.runtime.serves || p == NULL)
		return a.runtime.free(p);
	CUresult e = ta_cuda_free_block((CUdeviceptr)p, current, call_runtime_free, &a);
	return e == CUDA_SUCCESS || a.called ? e : a.runtime.free(p);
}
