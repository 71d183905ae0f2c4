// Memory that is known by a handle: arrays.
#include "fake.h"

struct CUarray_st {
	CUdeviceptr memory;
};

static CUresult array(CUarray *out, size_t n)
{
	CUarray a = calloc(1, sizeof *a);
	CUresult e = fake_allocate(&a->memory, n);
	if (e != CUDA_SUCCESS)
		free(a);
	else
		*out = a;
	return e;
}

API CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
	CALL(cuArrayCreate_v2, CONTEXT);
	return array(out, d->width * (d->height ? d->height : 1) * d->channels * 4);
}

API CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	CALL(cuArray3DCreate_v2, CONTEXT);
	return array(
		out, d->width * (d->height ? d->height : 1) * (d->depth ? d->depth : 1) * d->channels * 4);
}

API CUresult cuArrayDestroy(CUarray a)
{
	CALL(cuArrayDestroy, CONTEXT);
	fake_release(a->memory);
	free(a);
	return CUDA_SUCCESS;
}

API CUresult cuMipmappedArrayCreate(
	CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	size_t n = 0;
	CALL(cuMipmappedArrayCreate, CONTEXT);
	for (unsigned i = 0; i < levels; i++)
		n += ((d->width >> i) + 1) * ((d->height >> i) + 1) * d->channels * 4;
	return array((CUarray *)out, n);
}

API CUresult cuMipmappedArrayDestroy(CUmipmappedArray a)
{
	CALL(cuMipmappedArrayDestroy, CONTEXT);
	fake_release(((CUarray)a)->memory);
	free(a);
	return CUDA_SUCCESS;
}
