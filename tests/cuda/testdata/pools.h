// What the tests of the driver's pools share.
#ifndef POOLS_H
#define POOLS_H
#include "common.h"

static CUstream stream(void)
{
	CUstream s;
	OK(cu.cuStreamCreate(&s, 1));
	return s;
}

static CUdeviceptr take(size_t n, CUstream s)
{
	CUdeviceptr p = 0;
	OK(cu.cuMemAllocAsync(&p, n, s));
	CHECK(p != 0, "%zu bytes", n);
	return p;
}

// How many allocations the driver's pools have served.
static unsigned long pooled(void)
{
	return fake.fake_calls("cuMemAllocAsync") + fake.fake_calls("cuMemAllocAsync_ptsz") +
		fake.fake_calls("cuMemAllocFromPoolAsync");
}

static const size_t sizes[] = {1, 4096, MIB - 512, MIB, 5 * MIB, 40 * MIB};
#define SIZES (sizeof sizes / sizeof *sizes)

#endif
