// Copies of contents, which are done when the call returns, after what the stream has been
// given before, as those of ordinary host memory are; and the names of errors.
#include "fake.h"

static CUresult copy(void *to, const void *from, CUdeviceptr device, size_t n, CUstream handle)
{
	CUstream s = fake_live_stream(handle, 0);
	if (s == NULL)
		return INVALID_HANDLE;
	if (!fake_reaches(device, n))
		return fake_illegal(CUDA_ERROR_INVALID_VALUE, "a copy of more than there is");
	fake_queue(s, RECORD); // which has it wait for what it must
	fake_drain(s);
	memmove(to, from, n);
	return CUDA_SUCCESS;
}

API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
	CALL(cuMemcpyHtoDAsync_v2, CONTEXT);
	return copy((void *)to, from, to, n, s);
}

API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s)
{
	CALL(cuMemcpyDtoHAsync_v2, CONTEXT);
	return copy(to, (void *)from, from, n, s);
}

API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
	CALL(cuMemcpyDtoDAsync_v2, CONTEXT);
	return copy((void *)to, (void *)from, from, n, s);
}

// Between any two places that the driver knows.
API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
	CALL(cuMemcpyAsync, CONTEXT);
	if (!fake_reaches(from, n))
		return fake_illegal(CUDA_ERROR_INVALID_VALUE, "a copy of more than there is");
	return copy((void *)to, (void *)from, to, n, s);
}

static CUresult pattern(CUdeviceptr p, const void *value, size_t width, size_t n, CUstream handle)
{
	CUstream s = fake_live_stream(handle, 0);
	if (s == NULL)
		return INVALID_HANDLE;
	if (p % width != 0 || !fake_reaches(p, n * width))
		return fake_illegal(CUDA_ERROR_INVALID_VALUE, "a pattern on more than there is");
	fake_queue(s, RECORD);
	fake_drain(s);
	for (size_t i = 0; i < n; i++)
		memcpy((char *)p + i * width, value, width);
	return CUDA_SUCCESS;
}

API CUresult cuMemsetD16Async(CUdeviceptr p, unsigned short value, size_t n, CUstream s)
{
	CALL(cuMemsetD16Async, CONTEXT);
	return pattern(p, &value, sizeof value, n, s);
}

API CUresult cuMemsetD32Async(CUdeviceptr p, unsigned value, size_t n, CUstream s)
{
	CALL(cuMemsetD32Async, CONTEXT);
	return pattern(p, &value, sizeof value, n, s);
}

API CUresult cuGetErrorName(CUresult e, const char **out)
{
	CALL(cuGetErrorName, NOTHING);
	static const struct {
		CUresult e;
		const char *name;
	} names[] = {
		{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
		{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
		{INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
		{INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
	};
	*out = NULL;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].e == e)
			*out = names[i].name;
	return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
