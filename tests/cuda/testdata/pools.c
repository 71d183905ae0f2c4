// Stream-ordered memory of the driver's interface when the heap serves it (TA_CUDA_ASYNC=heap).
// "errors" prints what must be the same without the library; the other cases check.
#include "pools.h"

enum { BLOCKS = 6 };
static CUcontext context;

// A block freed on a stream is free for that stream at once, whatever work is pending on it.
static void served(void)
{
	load();
	CUstream all[] = {stream(), NULL, (CUstream)CU_STREAM_LEGACY};
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < SIZES; i++) {
			CUdeviceptr p = take(sizes[i], all[k]);
			OK(fake.fake_launch(p, sizes[i], 1, all[k]));
			OK(cu.cuMemFreeAsync(p, all[k]));
			unsigned long waits = fake.fake_calls("cuCtxSynchronize");
			CUdeviceptr q = take(sizes[i], all[k]);
			CHECK(p == q, "stream %u, %zu bytes: another block", k, sizes[i]);
			OK(cu.cuMemFreeAsync(q, all[k]));
			CHECK(fake.fake_calls("cuCtxSynchronize") == waits, "a wait");
		}
	CHECK(pooled() == 0, "the driver has served %lu", pooled());
}

// A free on another stream comes after that stream's work, and lets the next one have the block.
static void crossed(void)
{
	CUevent e;
	load();
	CUstream a = stream(), b = stream();
	OK(cu.cuEventCreate(&e, 2));
	for (unsigned i = 0; i < SIZES; i++) {
		size_t n = sizes[i];
		CUdeviceptr p = take(n, a), q;
		OK(fake.fake_launch(p, n, 1, a));
		OK(cu.cuEventRecord(e, a));
		OK(cu.cuStreamWaitEvent(b, e, 0));
		OK(fake.fake_launch(p, n, 2, b));
		OK(cu.cuMemFreeAsync(p, b));
		for (int k = 0; k < BLOCKS; k++) {
			q = take(n, a);
			CHECK(q != p && fake.fake_busy(q, n, a, 1) == 0, "%zu bytes: reused too early", n);
		}
		q = take(n, b);
		CHECK(q == p, "%zu bytes: stream b does not get its block", n);
		OK(cu.cuMemFreeAsync(q, b));
	}
	CHECK(pooled() == 0, "the driver has served %lu", pooled());
}

// cuMemFree of such a block: no stream gets it while work on it is pending.
static void freed(void)
{
	load();
	CUstream a = stream(), b = stream();
	for (unsigned i = 0; i < SIZES; i++) {
		CUdeviceptr p = take(sizes[i], a);
		OK(fake.fake_launch(p, sizes[i], 1, a));
		OK(cu.cuMemFree_v2(p));
		CUdeviceptr q = take(sizes[i], b);
		CHECK(fake.fake_busy(q, sizes[i], b, 1) == 0, "%zu bytes", sizes[i]);
		OK(cu.cuMemFree_v2(q));
	}
}

// The stream of a block has ended: a free on another stream does not wait for the device.
static void ended(void)
{
	load();
	CUstream a = stream(), b = stream();
	CUdeviceptr p = take(5 * MIB, a);
	OK(cu.cuStreamDestroy_v2(a));
	OK(fake.fake_launch(p, 5 * MIB, 1, b));
	unsigned long waits = fake.fake_calls("cuCtxSynchronize");
	OK(cu.cuMemFreeAsync(p, b));
	CHECK(fake.fake_calls("cuCtxSynchronize") == waits, "a wait");
	CUstream c = stream();
	CUdeviceptr q = take(5 * MIB, c);
	CHECK(fake.fake_busy(q, 5 * MIB, c, 1) == 0, "reused too early");
	CHECK(take(5 * MIB, b) == p, "stream b does not get its block");
}

// A graph's memory is the driver's. Within a capture no block of the heap can be freed.
static void captured(void)
{
	CUdeviceptr node, p;
	CUgraph g;
	load();
	CUstream s = stream(), other = stream();
	CUdeviceptr before = take(5 * MIB, s);
	OK(cu.cuStreamBeginCapture_v2(s, 2));
	OK(cu.cuMemAllocAsync(&node, 5 * MIB, s));
	CHECK(pooled() == 1, "the driver has served %lu", pooled());
	CHECK(cu.cuMemFreeAsync(before, s) == CUDA_ERROR_INVALID_VALUE, "a free in a graph");
	p = take(5 * MIB, other);
	CHECK(p != before && pooled() == 1, "a stream that captures nothing");
	OK(fake.fake_launch(p, 5 * MIB, 1, other));
	OK(cu.cuMemFreeAsync(p, other));
	p = take(5 * MIB, other);
	CHECK(fake.fake_busy(p, 5 * MIB, other, 1) == 0, "reused too early");
	OK(cu.cuMemFreeAsync(node, s));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuMemFreeAsync(before, s));
	CHECK(take(5 * MIB, s) == before, "after the capture");
	CHECK(pooled() == 1, "the driver has served %lu", pooled());
}

static CUdeviceptr from(CUmemoryPool pool, CUstream s)
{
	CUdeviceptr p;
	OK(cu.cuMemAllocFromPoolAsync(&p, 3 * MIB, pool, s));
	return p;
}

// Which pool serves what.
static void pools(void)
{
	CUmemoryPool standard, second;
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	load();
	CUstream s = stream();
	OK(cu.cuDeviceGetDefaultMemPool(&standard, 0));
	OK(cu.cuDeviceGetDefaultMemPool(&second, 1));
	OK(cu.cuMemFreeAsync(from(standard, s), s));
	CHECK(pooled() == 0, "the default pool");
	OK(cu.cuMemFreeAsync(from(fake.fake_pool(0), s), s));
	CHECK(pooled() == 1, "a pool of the program's");
	OK(cu.cuMemFreeAsync(from(second, s), s));
	CHECK(pooled() == 2, "the default pool of another device");
	OK(cu.cuDeviceSetMemPool(0, fake.fake_pool(0)));
	OK(cu.cuMemFreeAsync(take(3 * MIB, s), s));
	CHECK(pooled() == 3, "a pool that was chosen");
	OK(cu.cuDeviceSetMemPool(0, standard));
	OK(cu.cuMemFreeAsync(take(3 * MIB, s), s));
	CHECK(pooled() == 3, "the default pool, chosen again");
	OK(cu.cuMemSetMemPool(&here, 1, fake.fake_pool(0)));
	OK(cu.cuMemFreeAsync(take(3 * MIB, s), s));
	CHECK(pooled() == 4, "a pool that was chosen for the location");
	OK(cu.cuMemFreeAsync(from(standard, s), s));
	CHECK(pooled() == 4, "the default pool, named");
	fake.fake_complete_all();
}

static uint64_t attribute(CUmemoryPool pool, int which)
{
	uint64_t n = 0;
	OK(cu.cuMemPoolGetAttribute(pool, which, &n));
	return n;
}

// The default pool's figures include the heap's, and trimming it returns the heap's cache.
static void attributes(void)
{
	enum { RESERVED = 5, RESERVED_HIGH, USED, USED_HIGH };
	CUmemoryPool pool, second;
	uint64_t zero = 0;
	load();
	CUstream s = stream();
	OK(cu.cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cu.cuDeviceGetDefaultMemPool(&second, 1));
	CUdeviceptr p = take(10 * MIB, s), q = take(20 * MIB, s);
	CHECK(attribute(pool, USED) == 30 * MIB, "%lu", attribute(pool, USED));
	CHECK(attribute(pool, RESERVED) >= 30 * MIB, "%lu", attribute(pool, RESERVED));
	CHECK(attribute(second, USED) == 0 && attribute(fake.fake_pool(0), USED) == 0, "other pools");
	OK(cu.cuMemFreeAsync(q, s));
	CHECK(attribute(pool, USED) == 10 * MIB, "%lu", attribute(pool, USED));
	CHECK(attribute(pool, USED_HIGH) == 30 * MIB, "%lu", attribute(pool, USED_HIGH));
	CHECK(attribute(pool, RESERVED) >= 30 * MIB, "%lu", attribute(pool, RESERVED));
	OK(cu.cuMemPoolTrimTo(second, 0));
	OK(cu.cuMemPoolTrimTo(pool, 64 * MIB));
	CHECK(attribute(pool, RESERVED) >= 30 * MIB, "%lu", attribute(pool, RESERVED));
	OK(cu.cuMemPoolTrimTo(pool, 0));
	uint64_t left = attribute(pool, RESERVED);
	CHECK(left < 30 * MIB && left == fake.fake_used(0), "%lu, %zu", left, fake.fake_used(0));
	CHECK(attribute(pool, RESERVED_HIGH) >= 30 * MIB, "%lu", attribute(pool, RESERVED_HIGH));
	OK(cu.cuMemPoolSetAttribute(pool, USED_HIGH, &zero));
	CHECK(attribute(pool, USED_HIGH) == 10 * MIB, "%lu", attribute(pool, USED_HIGH));
	CHECK(attribute(pool, RESERVED_HIGH) >= 30 * MIB, "%lu", attribute(pool, RESERVED_HIGH));
	OK(cu.cuMemPoolSetAttribute(pool, RESERVED_HIGH, &zero));
	CHECK(attribute(pool, RESERVED_HIGH) == left, "%lu", attribute(pool, RESERVED_HIGH));
	OK(cu.cuMemFreeAsync(p, s));
}

// Access to the pool is access to the heap's memory.
static void access_to(void)
{
	const CUmemAccessDesc to[] = {
		{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3}, {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, 3}};
	CUmemoryPool pool;
	CUcontext other, now, first = load();
	CUdeviceptr p = take(4096, NULL);
	(void)p;
	OK(cu.cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cu.cuMemPoolSetAccess(pool, to, 1));
	CHECK(fake.fake_calls("cuCtxEnablePeerAccess") == 0, "its own device");
	OK(cu.cuMemPoolSetAccess(pool, to, 2));
	OK(cu.cuCtxGetCurrent(&now));
	CHECK(now == first, "another context is current");
	OK(cu.cuDevicePrimaryCtxRetain(&other, 1));
	OK(cu.cuCtxSetCurrent(other));
	OK(cu.cuCtxDisablePeerAccess(first)); // an error if there were none
}

// Caps hold to the byte, and memory that was freed can be had again.
static void capped(void)
{
	CUdeviceptr p[BLOCKS + 1];
	load();
	CUstream a = stream(), b = stream();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < BLOCKS; i++)
			p[i] = take(10 * MIB, a);
		CHECK(cu.cuMemAllocAsync(&p[BLOCKS], 10 * MIB, b) == CUDA_ERROR_OUT_OF_MEMORY, "no cap");
		CHECK(fake.fake_used(0) <= 64 * MIB, "%zu bytes", fake.fake_used(0));
		for (int i = 0; i < BLOCKS; i++) {
			OK(fake.fake_launch(p[i], 10 * MIB, 1, a));
			OK(cu.cuMemFreeAsync(p[i], a));
		}
		CUdeviceptr q = take(30 * MIB, b); // waits for stream a on the device
		CHECK(fake.fake_busy(q, 30 * MIB, b, 1) == 0, "reused too early");
		OK(cu.cuMemFreeAsync(q, b));
	}
	CHECK(pooled() == 0, "the driver has served %lu", pooled());
}

// The device is reset: its blocks are gone, and the next ones are new.
static void reset(void)
{
	CUmemoryPool pool;
	load();
	OK(cu.cuDeviceGetDefaultMemPool(&pool, 0));
	for (int i = 0; i < 3; i++) {
		CUstream s = stream();
		CUdeviceptr p = take(5 * MIB, s);
		take(1000, s);
		OK(cu.cuMemFreeAsync(p, s));
		OK(cu.cuDevicePrimaryCtxReset_v2(0));
		CHECK(fake.fake_used(0) == 0, "%zu bytes", fake.fake_used(0));
		CHECK(attribute(pool, 7) == 0, "%lu bytes in use", attribute(pool, 7));
		CHECK(cu.cuMemFreeAsync(p, NULL) != 0, "a block outlives its context");
		OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
		OK(cu.cuCtxSetCurrent(context));
	}
}

// A stream of a context that is not current: the block belongs to the stream's.
static void elsewhere(void)
{
	CUcontext first = load(), second, of;
	CUstream s = stream();
	OK(cu.cuCtxCreate_v2(&second, 0, 1));
	CUdeviceptr p = take(5 * MIB, s);
	CHECK(fake.fake_used(0) >= 5 * MIB && fake.fake_used(1) == 0, "the wrong device");
	OK(cu.cuPointerGetAttribute(&of, 1, p));
	CHECK(of == first, "the wrong context");
	OK(cu.cuMemFreeAsync(p, s));
	CHECK(take(5 * MIB, s) == p && pooled() == 0, "not reused");
}

static void errors(void)
{
	CUdeviceptr p, q;
	uint64_t n = 1;
	load();
	CUstream s = stream();
	OK(cu.cuMemAlloc_v2(&q, 1000)); // so that the library has served something
	SHOW(cu.cuMemAllocAsync(&p, 0, s));
	SHOW(cu.cuMemAllocAsync(NULL, 1000, s));
	SHOW(cu.cuMemAllocAsync(&p, ~0ul, s));
	SHOW(cu.cuMemAllocAsync(&p, 2048 * MIB, s));
	SHOW(cu.cuMemAllocFromPoolAsync(&p, 1000, NULL, s));
	SHOW(cu.cuMemFreeAsync(0, s));
	SHOW(cu.cuMemFreeAsync(0x1000, s));
	SHOW(cu.cuMemAllocAsync(&p, 5 * MIB, s));
	SHOW(cu.cuMemFreeAsync(p + 512, s));
	SHOW(cu.cuMemFreeAsync(p, s));
	fake.fake_complete_all();
	SHOW(cu.cuMemFreeAsync(p, s));
	SHOW(cu.cuMemFree_v2(p));
	SHOW(cu.cuMemPoolGetAttribute(NULL, 5, &n));
	SHOW(cu.cuMemPoolTrimTo(NULL, 0));
	SHOW(cu.cuMemPoolSetAttribute(NULL, 6, &n));
	SHOW(cu.cuMemPoolSetAccess(NULL, NULL, 0));
	SHOW(cu.cuDeviceSetMemPool(0, NULL));
	SHOW(cu.cuMemSetMemPool(NULL, 1, NULL));
	SHOW(cu.cuCtxSetCurrent(NULL));
	SHOW(cu.cuMemAllocAsync(&p, 1000, NULL));
	SHOW(cu.cuMemFreeAsync(q, NULL));
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"served", served},
		{"crossed", crossed},
		{"freed", freed},
		{"ended", ended},
		{"captured", captured},
		{"pools", pools},
		{"attributes", attributes},
		{"access", access_to},
		{"capped", capped},
		{"reset", reset},
		{"elsewhere", elsewhere},
		{"errors", errors},
	};
	RUN(tests);
}
