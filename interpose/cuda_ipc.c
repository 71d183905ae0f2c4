// Memory shared between processes (CUDA IPC). A handle of the driver stands for a whole allocation:
// if another process opens the handle of a block within a segment, it gets the start of the
// segment. So this file adds the offset of the block to such a handle, and seals the handle: a
// process without the library gets an error from it, never the bytes of another block.
#include <string.h>
#include "cuda_driver.h"

// In the handles of current drivers (580 was examined) the last eight bytes are zero. The driver
// checks the bytes before, and refuses a handle in which all of them are changed.
enum { BODY = 56, SEAL = 0x5a };
static const unsigned char mark[4] = {'T', 'A', 'i', 'p'};
static const uint64_t unit = 512; // of offsets: blocks begin at multiples of it

static void flip(CUipcMemHandle *h)
{
	for (int i = 0; i < BODY; i++)
		h->bytes[i] ^= SEAL;
}

// Writes the offset into the handle. Returns 0 if the offset does not fit.
static int seal(CUipcMemHandle *h, uint64_t offset)
{
	static const unsigned char empty[sizeof h->bytes - BODY];
	uint32_t units = (uint32_t)(offset / unit);
	if (memcmp(h->bytes + BODY, empty, sizeof empty) != 0 || units * unit != offset)
		return 0;
	flip(h);
	memcpy(h->bytes + BODY, mark, sizeof mark);
	memcpy(h->bytes + BODY + sizeof mark, &units, sizeof units);
	return 1;
}

// Restores the driver's handle from a sealed one, and returns the offset. Returns 0 for a handle
// that is not sealed.
static uint64_t unseal(CUipcMemHandle *h)
{
	uint32_t units;
	if (memcmp(h->bytes + BODY, mark, sizeof mark) != 0)
		return 0;
	memcpy(&units, h->bytes + BODY + sizeof mark, sizeof units);
	memset(h->bytes + BODY, 0, sizeof h->bytes - BODY);
	flip(h);
	return units * unit;
}

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr p)
{
	ta_cuda_request block;
	CUdeviceptr base;
	size_t size;
	int ours = ta_cuda_block(&p, &block);
	CUresult e = TA_CUDA_PASS(cuIpcGetMemHandle, out, p);
	if (e != CUDA_SUCCESS || !ours)
		return e;
	e = ta_cu.cuMemGetAddressRange_v2(&base, &size, p);
	if (e != CUDA_SUCCESS || block.Value == base)
		return e;
	if (seal(out, block.Value - base))
		return CUDA_SUCCESS;
	memset(out, 0, sizeof *out);
	return CUDA_ERROR_NOT_SUPPORTED;
}

// The addresses at which sealed handles were opened. Each open takes an entry, and each close
// clears one. beyond counts the opens that found no entry.
enum { OPENED = 256 };
static CUdeviceptr opened[OPENED];
static uint64_t beyond;

static int exchange(CUdeviceptr from, CUdeviceptr to)
{
	for (int i = 0; i < OPENED; i++) {
		CUdeviceptr was = from;
		if (__atomic_load_n(&opened[i], __ATOMIC_RELAXED) == from &&
			__atomic_compare_exchange_n(
				&opened[i], &was, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return 1;
	}
	return 0;
}

static void remember(CUdeviceptr p)
{
	if (!exchange(0, p))
		__atomic_add_fetch(&beyond, 1, __ATOMIC_RELAXED);
}

static CUresult open_handle(CUresult (*call)(CUdeviceptr *, CUipcMemHandle, unsigned),
	CUdeviceptr *out, CUipcMemHandle h, unsigned flags)
{
	uint64_t offset = 0;
	if (call == NULL)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ta_flags.CudaOff)
		offset = unseal(&h);
	CUresult e = call(out, h, flags);
	if (e == CUDA_SUCCESS && offset != 0) {
		*out += offset;
		remember(*out);
	}
	return e;
}

EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle h, unsigned flags)
{
	return open_handle(TA_CUDA_REAL(cuIpcOpenMemHandle), out, h, flags);
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle h, unsigned flags)
{
	return open_handle(TA_CUDA_REAL(cuIpcOpenMemHandle_v2), out, h, flags);
}

// Takes back one count of beyond. Returns 0 if there is none.
static int take_beyond(void)
{
	uint64_t n = __atomic_load_n(&beyond, __ATOMIC_RELAXED);
	while (n != 0)
		if (__atomic_compare_exchange_n(&beyond, &n, n - 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return 1;
	return 0;
}

// For an address at which a sealed handle was opened, the driver must get the start of the mapping.
// If some addresses have no entry, this holds for any address inside a mapping. The entry is
// cleared first, because after the driver's call another thread may get the address.
EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr p)
{
	CUdeviceptr base;
	size_t size;
	int sealed = p != 0 && exchange(p, 0);
	if (!sealed && __atomic_load_n(&beyond, __ATOMIC_RELAXED) == 0)
		return TA_CUDA_PASS(cuIpcCloseMemHandle, p);
	if (ta_cu.cuMemGetAddressRange_v2(&base, &size, p) != CUDA_SUCCESS)
		base = p;
	if (!sealed && base != p)
		sealed = take_beyond();
	CUresult e = TA_CUDA_PASS(cuIpcCloseMemHandle, sealed ? base : p);
	if (e != CUDA_SUCCESS && sealed)
		remember(p);
	return e;
}
