// Memory at reserved addresses (cudahook/reservation.go), by the driver's virtual memory
// management.
#define _GNU_SOURCE
#include <sys/mman.h>
#include "cuda_driver.h"
#include "libc_symbol.h"
#include "syscall.h"

enum {
	VIRTUAL_MEMORY_MANAGEMENT = 102,
	GPU_DIRECT_RDMA_WITH_VMM = 110,
	ALLOCATION_PINNED = 1,
	ACCESS_READ_WRITE = 3,
	UNIT = 2 << 20,
	DEVICES = 64,
};

static int has(int attribute, CUdevice d)
{
	int value = 0;
	return ta_cu.cuDeviceGetAttribute != NULL &&
		ta_cu.cuDeviceGetAttribute(&value, attribute, d) == CUDA_SUCCESS && value;
}

CUresult ta_cuda_reserve(ta_cuda_request *r)
{
	CUdevice d;
	CUdeviceptr p;
	if (ta_cu.cuMemAddressReserve == NULL || ta_cu.cuMemAddressFree == NULL ||
		ta_cu.cuMemMap == NULL || ta_cu.cuMemUnmap == NULL || ta_cu.cuMemSetAccess == NULL ||
		ta_cu.cuMemCreate == NULL || ta_cu.cuMemRelease == NULL)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult e = ta_cu.cuCtxGetDevice(&d);
	if (e == CUDA_SUCCESS && !has(VIRTUAL_MEMORY_MANAGEMENT, d))
		e = CUDA_ERROR_NOT_SUPPORTED;
	if (e == CUDA_SUCCESS)
		e = ta_cu.cuMemAddressReserve(&p, r->OnBytes, UNIT, 0, 0);
	if (e == CUDA_SUCCESS)
		r->Value = p;
	return e;
}

// The context of the memory has ended, which does not unmap it. Unmapping passes over addresses
// where nothing is mapped.
CUresult ta_cuda_unreserve(ta_cuda_request *r)
{
	CUresult e = CUDA_SUCCESS;
	if (r->OnUsed != 0)
		e = ta_cu.cuMemUnmap(r->OnAddress, r->OnUsed);
	return e == CUDA_SUCCESS ? ta_cu.cuMemAddressFree(r->OnAddress, r->OnBytes) : e;
}

CUresult ta_cuda_access(ta_cuda_request *r)
{
	CUmemAccessDesc to[DEVICES];
	size_t n = 0;
	for (int d = 0; d < DEVICES; d++)
		if (r->OnAccess >> d & 1)
			to[n++] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, d}, ACCESS_READ_WRITE};
	return n == 0 ? CUDA_SUCCESS : ta_cu.cuMemSetAccess(r->OnAddress, r->OnBytes, to, n);
}

// One piece: its handle is not needed once it is mapped. The memory is returned when it is
// unmapped.
static CUresult map_piece(CUdeviceptr p, size_t n, const CUmemAllocationProp *prop)
{
	CUmemGenericAllocationHandle h;
	CUresult e = ta_cu.cuMemCreate(&h, n, prop, 0);
	if (e != CUDA_SUCCESS)
		return e;
	e = ta_cu.cuMemMap(p, n, 0, h, 0);
	ta_cu.cuMemRelease(h);
	return e;
}

CUresult ta_cuda_map_at(ta_cuda_request *r)
{
	CUdevice d;
	CUresult e = ta_cu.cuCtxGetDevice(&d);
	if (e != CUDA_SUCCESS)
		return e;
	CUmemAllocationProp prop = {
		.type = ALLOCATION_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, d},
		.gpu_direct_rdma = (unsigned char)has(GPU_DIRECT_RDMA_WITH_VMM, d),
	};
	CUmemAccessDesc own = {prop.location, ACCESS_READ_WRITE};
	uint64_t done = 0;
	while (done < r->OnBytes && e == CUDA_SUCCESS) {
		uint64_t n = r->OnBytes - done < r->OnPiece ? r->OnBytes - done : r->OnPiece;
		e = map_piece(r->OnAddress + done, n, &prop);
		if (e == CUDA_SUCCESS)
			done += n;
	}
	if (e == CUDA_SUCCESS)
		e = ta_cu.cuMemSetAccess(r->OnAddress, r->OnBytes, &own, 1);
	if (e == CUDA_SUCCESS)
		ta_cuda_access(r);
	else if (done != 0)
		ta_cu.cuMemUnmap(r->OnAddress, done);
	return e;
}

// Page-locked memory. Huge pages make it two to three times as fast to have as cuMemHostAlloc.
static CUresult host_memory(void **out, size_t n)
{
	void *map = TA_RARE(mmap)(
		NULL, n + UNIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uintptr_t p = (uintptr_t)map, at = (p + UNIT - 1) & ~(uintptr_t)(UNIT - 1);
	if (at > p)
		TA_RARE(munmap)((void *)p, at - p);
	if (p + UNIT > at)
		TA_RARE(munmap)((void *)(at + n), p + UNIT - at);
	ta_sys4(SYS_madvise, at, n, MADV_HUGEPAGE, 0);
	CUresult e = ta_cu.cuMemHostRegister_v2((void *)at, n, 0);
	if (e != CUDA_SUCCESS)
		TA_RARE(munmap)((void *)at, n);
	else
		*out = (void *)at;
	return e;
}

CUresult ta_cuda_free_host(ta_cuda_request *r)
{
	CUresult e = ta_cu.cuMemHostUnregister((void *)r->OnHost);
	if (e == CUDA_SUCCESS)
		TA_RARE(munmap)((void *)r->OnHost, r->OnBytes);
	return e;
}

// A copy between the device and page-locked memory of the host, on a stream of its own: the default
// stream would wait for other streams.
static CUresult copy(CUdeviceptr p, void *host, size_t n, int back)
{
	CUstream s;
	CUresult e = ta_cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
	if (e != CUDA_SUCCESS)
		return e;
	e = back ? ta_cu.cuMemcpyHtoDAsync_v2(p, host, n, s) :
			   ta_cu.cuMemcpyDtoHAsync_v2(host, p, n, s);
	if (e == CUDA_SUCCESS)
		e = ta_cu.cuStreamSynchronize(s);
	ta_cu.cuStreamDestroy_v2(s);
	return e;
}

CUresult ta_cuda_save(ta_cuda_request *r)
{
	void *host = (void *)r->OnHost;
	if (ta_cu.cuMemcpyDtoHAsync_v2 == NULL || ta_cu.cuMemcpyHtoDAsync_v2 == NULL ||
		ta_cu.cuMemHostRegister_v2 == NULL || ta_cu.cuMemHostUnregister == NULL)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult e = host != NULL ? CUDA_SUCCESS : host_memory(&host, r->OnBytes);
	if (e != CUDA_SUCCESS)
		return e;
	r->Value = (uint64_t)host;
	e = copy(r->OnAddress, host, r->OnBytes, 0);
	if (e != CUDA_SUCCESS && r->OnHost == 0) {
		r->OnHost = (uint64_t)host;
		ta_cuda_free_host(r);
	}
	return e;
}

CUresult ta_cuda_restore(ta_cuda_request *r)
{
	return copy(r->OnAddress, (void *)r->OnHost, r->OnBytes, 1);
}
