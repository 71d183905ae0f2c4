// Handles for memory of another process: here of the same one.
#include "memory.h"

// A handle names the driver's allocation, whatever address in it is given; opened in the
// same process, for want of another, it gives that allocation's address.
struct handle {
	CUdeviceptr address;
	uint64_t id, check;
	unsigned char zero[40];
};

API CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr p)
{
	CALL(cuIpcGetMemHandle, CONTEXT);
	struct memory *m = fake_find(p);
	if (m == NULL || m->how == MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	struct handle h = {m->address, m->id, m->address ^ m->id, {0}};
	memcpy(out, &h, sizeof h);
	return CUDA_SUCCESS;
}

static CUresult open_handle(CUdeviceptr *out, CUipcMemHandle handle)
{
	struct handle h;
	memcpy(&h, &handle, sizeof h);
	struct memory *m = fake_find(h.address);
	if (h.check != (h.address ^ h.id) || m == NULL || m->id != h.id)
		return CUDA_ERROR_INVALID_VALUE;
	m->opened++;
	*out = h.address;
	return CUDA_SUCCESS;
}

API CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle h, unsigned flags)
{
	CALL(cuIpcOpenMemHandle, CONTEXT);
	return open_handle(out, h);
}

API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle h, unsigned flags)
{
	CALL(cuIpcOpenMemHandle_v2, CONTEXT);
	return flags != 1 ? CUDA_ERROR_INVALID_VALUE : open_handle(out, h);
}

API CUresult cuIpcCloseMemHandle(CUdeviceptr p)
{
	CALL(cuIpcCloseMemHandle, CONTEXT);
	struct memory *m = fake_find(p);
	if (m == NULL || m->address != p || m->opened == 0)
		return CUDA_ERROR_INVALID_VALUE;
	m->opened--;
	return CUDA_SUCCESS;
}
