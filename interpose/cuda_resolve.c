// How programs find the driver's functions, and get the library's versions instead: by the linker,
// by dlsym (cuda_dlsym_amd64.S), by cuGetProcAddress and by the CUDA runtime's
// cudaGetDriverEntryPoint. The real resolver is always asked first. Its result is replaced only if
// it is exactly the function that the library has a version of. So the resolver handles versions
// and flags, and unknown functions pass unchanged.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include "cuda_driver.h"
#include "boot.h"

// Declared here, and exported below and in the other CUDA files.
#define DECLARE(name, ...) CUresult name(__VA_ARGS__);
TA_CUDA_HOOKED(DECLARE)
CUresult cudaMalloc(void **out, size_t n);
CUresult cudaFree(void *p);
CUresult cudaGetDriverEntryPoint(const char *name, void **out, uint64_t flags, int *status);
CUresult cudaGetDriverEntryPoint_ptsz(const char *name, void **out, uint64_t flags, int *status);
CUresult cudaGetDriverEntryPointByVersion(
	const char *name, void **out, unsigned version, uint64_t flags, int *status);
CUresult cudaGetDriverEntryPointByVersion_ptsz(
	const char *name, void **out, unsigned version, uint64_t flags, int *status);

// The functions of the CUDA runtime. Programs reach these through the linker only.
#define RUNTIME(F) \
	F(cudaMalloc) \
	F(cudaFree) \
	F(cudaGetDriverEntryPoint) \
	F(cudaGetDriverEntryPoint_ptsz) \
	F(cudaGetDriverEntryPointByVersion) \
	F(cudaGetDriverEntryPointByVersion_ptsz)

// The library's functions by name. The table holds no addresses, and the compiler must not make one
// that does, because each would be a relocation in every process.
enum { NO_DRIVER = UINT16_MAX };
static const struct entry {
	char name[38];
	// offset of the driver's function in ta_cu; NO_DRIVER for functions of the runtime
	uint16_t real;
} entries[] = {
#define ENTRY(name, ...) {#name, offsetof(struct ta_cuda_driver, name)},
	TA_CUDA_HOOKED(ENTRY)
#define RUNTIME_ENTRY(name) {#name, NO_DRIVER},
		RUNTIME(RUNTIME_ENTRY)};
enum {
#define INDEX(name, ...) INDEX_##name,
	TA_CUDA_HOOKED(INDEX) RUNTIME(INDEX) ENTRIES
};

__attribute__((optimize("no-jump-tables", "no-tree-switch-conversion"))) static void *ours(
	const struct entry *e)
{
	switch (e - entries) {
#define CASE(name, ...) \
	case INDEX_##name: \
		return (void *)name;
		TA_CUDA_HOOKED(CASE)
		RUNTIME(CASE)
	}
	return NULL;
}

// The driver's function, or NULL.
static void *real(const struct entry *e)
{
	return e->real == NO_DRIVER ? NULL : *(void *const *)((const char *)&ta_cu + e->real);
}

static const struct entry *entry_of(const char *name)
{
	for (int i = 0; i < ENTRIES; i++)
		if (ta_same(entries[i].name, name))
			return &entries[i];
	return NULL;
}

// Whether the program would have a function of the name without the library.
static int is_there(const struct entry *e, void *caller)
{
	return e->real == NO_DRIVER ? ta_cuda_runtime_symbol(e->name, caller) != NULL :
								  ta_cuda_find() && real(e) != NULL;
}

// Whether ta_cuda_dlsym must handle a search; if not, dlsym jumps to libc's. Only libc can resolve
// RTLD_NEXT, from its caller's return address. But next to the program it would find the library's
// function even if there is no driver for it.
int ta_cuda_has(void *handle, const char *name, void *caller)
{
	const struct entry *e = entry_of(name);
	return ta_symbols_ours(handle) || (e != NULL && (handle != RTLD_NEXT || !is_there(e, caller)));
}

static int switched_off(void)
{
	if (ta_mode == TA_UNBOOTED)
		ta_boot();
	return ta_flags.CudaOff || ta_flags.Disabled;
}

void *ta_cuda_substitute(void *function)
{
	if (function == NULL || switched_off() || !ta_cuda_find())
		return function;
	for (int i = 0; i < ENTRIES; i++)
		if (real(&entries[i]) == function)
			return ours(&entries[i]);
	return function;
}

// The result of a search of all loaded objects if the library were absent. dlerror reports a failed
// search as it would then.
static void *without_us(const struct entry *e, void *caller)
{
	void *f = NULL;
	if (e->real == NO_DRIVER)
		f = ta_cuda_runtime_symbol(e->name, caller);
	else if (ta_cuda_find())
		f = real(e);
	void *next = ta_dlsym(RTLD_NEXT, e->name);
	return next != NULL ? next : f;
}

// dlsym for a name that the library has a function of, or for the library's own handle, with the
// program's return address. In a preloaded process the library's function is the first that a
// search of all objects finds. The program gets it only if the real one exists.
void *ta_cuda_dlsym(void *handle, const char *name)
{
	const struct entry *e = entry_of(name);
	void *caller = CALLER, *f;
	ta_cuda_find(); // before the search, whose error dlerror must report
	// the library's own handle, if it has no such function, stands for the driver's
	f = ta_dlsym(e != NULL ? handle : RTLD_NEXT, name);
	if (e != NULL && f == ours(e)) {
		f = without_us(e, caller);
		if (e->real == NO_DRIVER)
			return f == NULL || switched_off() ? f : ours(e);
	}
	return ta_cuda_substitute(f);
}

EXPORT CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	ta_cuda_load();
	CUresult e = TA_CUDA_PASS(cuGetProcAddress, name, out, version, flags);
	if (e == CUDA_SUCCESS && out != NULL)
		*out = ta_cuda_substitute(*out);
	return e;
}

EXPORT CUresult cuGetProcAddress_v2(
	const char *name, void **out, int version, uint64_t flags, int *status)
{
	ta_cuda_load();
	CUresult e = TA_CUDA_PASS(cuGetProcAddress_v2, name, out, version, flags, status);
	if (e == CUDA_SUCCESS && out != NULL)
		*out = ta_cuda_substitute(*out);
	return e;
}

// In the CUDA runtime before 12.0 these have no status argument; the real function then ignores it.
static CUresult entry_point(
	const char *call, void *caller, const char *name, void **out, uint64_t flags, int *status)
{
	CUresult (*real)(const char *, void **, uint64_t, int *) = ta_cuda_runtime_symbol(call, caller);
	if (real == NULL)
		return CUDA_RUNTIME_INSUFFICIENT_DRIVER;
	CUresult e = real(name, out, flags, status);
	if (e == CUDA_SUCCESS && out != NULL)
		*out = ta_cuda_substitute(*out);
	return e;
}

static CUresult entry_point_by(const char *call, void *caller, const char *name, void **out,
	unsigned version, uint64_t flags, int *status)
{
	CUresult (*real)(const char *, void **, unsigned, uint64_t, int *) = ta_cuda_runtime_symbol(
		call, caller);
	if (real == NULL)
		return CUDA_RUNTIME_INSUFFICIENT_DRIVER;
	CUresult e = real(name, out, version, flags, status);
	if (e == CUDA_SUCCESS && out != NULL)
		*out = ta_cuda_substitute(*out);
	return e;
}

EXPORT CUresult cudaGetDriverEntryPoint(const char *name, void **out, uint64_t flags, int *status)
{
	return entry_point("cudaGetDriverEntryPoint", CALLER, name, out, flags, status);
}

EXPORT CUresult cudaGetDriverEntryPoint_ptsz(
	const char *name, void **out, uint64_t flags, int *status)
{
	return entry_point("cudaGetDriverEntryPoint_ptsz", CALLER, name, out, flags, status);
}

EXPORT CUresult cudaGetDriverEntryPointByVersion(
	const char *name, void **out, unsigned version, uint64_t flags, int *status)
{
	return entry_point_by(
		"cudaGetDriverEntryPointByVersion", CALLER, name, out, version, flags, status);
}

EXPORT CUresult cudaGetDriverEntryPointByVersion_ptsz(
	const char *name, void **out, unsigned version, uint64_t flags, int *status)
{
	return entry_point_by(
		"cudaGetDriverEntryPointByVersion_ptsz", CALLER, name, out, version, flags, status);
}
