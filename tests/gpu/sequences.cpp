// Times one allocator with the sequences of sequences.h and prints a line for each:
//
//	allocator sequence ns_per_operation cold_ns_per_operation peak_reserved peak_live
//
// Usage: sequences ours|torch|pool [PASSES]. ours needs the library preloaded. The host's
// time is measured; the device is idle and no kernel runs. cold is the first pass, with
// nothing cached.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include "sequences.h"
#ifdef WITH_TORCH
#include <c10/cuda/CUDACachingAllocator.h>
#endif

#define CHECK(call) \
	do { \
		cudaError_t e_ = (call); \
		if (e_ != cudaSuccess) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_)); \
			exit(1); \
		} \
	} while (0)

struct Allocator {
	virtual void *alloc(size_t n) = 0;
	virtual void free(void *p, size_t n) = 0;
	virtual void empty() = 0;           // gives back what is cached, and forgets the peak
	virtual size_t peak_reserved() = 0; // since then
	virtual ~Allocator() = default;
};

static cudaStream_t stream;

struct Ours : Allocator {
	void *(*malloc_)(ssize_t, int, void *);
	void (*free_)(void *, ssize_t, int, void *);
	void (*trim)();
	size_t (*json)(char *, size_t);
	std::vector<char> text = std::vector<char>(4 << 20);

	template <class T> void find(T &f, const char *name)
	{
		f = reinterpret_cast<T>(dlsym(RTLD_DEFAULT, name));
		if (f == nullptr)
			fprintf(stderr, "the library is not preloaded: no %s\n", name), exit(1);
	}
	Ours() { find(malloc_, "ta_cuda_malloc"), find(free_, "ta_cuda_free"), find(trim, "ta_cuda_trim"), find(json, "ta_stats_json"); }
	void *alloc(size_t n) override { return malloc_(static_cast<ssize_t>(n), 0, stream); }
	void free(void *p, size_t n) override { free_(p, static_cast<ssize_t>(n), 0, stream); }
	void empty() override { trim(); }
	size_t peak_reserved() override // since the start
	{
		json(text.data(), text.size());
		const char *d = strstr(text.data(), "\"devices\"");
		const char *k = d ? strstr(d, "\"bytes_reserved_peak\":") : nullptr;
		return k ? strtoull(k + strlen("\"bytes_reserved_peak\":"), nullptr, 10) : 0;
	}
};

struct Pool : Allocator {
	cudaMemPool_t pool;
	Pool()
	{
		uint64_t all = ~0ull;
		CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
		CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
	}
	void *alloc(size_t n) override
	{
		void *p = nullptr;
		CHECK(cudaMallocAsync(&p, n, stream));
		return p;
	}
	void free(void *p, size_t) override { CHECK(cudaFreeAsync(p, stream)); }
	void empty() override
	{
		uint64_t zero = 0;
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaMemPoolTrimTo(pool, 0));
		CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &zero));
	}
	size_t peak_reserved() override
	{
		uint64_t high = 0;
		CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &high));
		return high;
	}
};

#ifdef WITH_TORCH
struct Torch : Allocator {
	c10::cuda::CUDACachingAllocator::CUDAAllocator *a;
	Torch()
	{
		c10::cuda::CUDACachingAllocator::init(1);
		a = c10::cuda::CUDACachingAllocator::get();
	}
	void *alloc(size_t n) override { return a->raw_alloc_with_stream(n, stream); }
	void free(void *p, size_t) override { a->raw_delete(p); }
	void empty() override { a->emptyCache(), a->resetPeakStats(0); }
	size_t peak_reserved() override { return a->getDeviceStats(0).reserved_bytes[0].peak; }
};
#endif

static double pass(Allocator &a, const Sequence &s, std::vector<void *> &slots, std::vector<size_t> &sizes)
{
	auto start = std::chrono::steady_clock::now();
	for (const Op &op : s.ops) {
		if (op.bytes != 0) {
			slots[op.slot] = a.alloc(op.bytes);
			if (slots[op.slot] == nullptr)
				fprintf(stderr, "%s: out of memory\n", s.name.c_str()), exit(1);
			sizes[op.slot] = op.bytes;
		} else {
			a.free(slots[op.slot], sizes[op.slot]);
		}
	}
	std::chrono::duration<double, std::nano> t = std::chrono::steady_clock::now() - start;
	return t.count() / static_cast<double>(s.ops.size());
}

int main(int argc, char **argv)
{
	std::string which = argc > 1 ? argv[1] : "";
	int passes = argc > 2 ? atoi(argv[2]) : 5;
	const char *only = argc > 3 ? argv[3] : "";
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	size_t free_bytes, total;
	CHECK(cudaMemGetInfo(&free_bytes, &total));
	Allocator *a = nullptr;
	if (which == "ours")
		a = new Ours;
	else if (which == "pool")
		a = new Pool;
#ifdef WITH_TORCH
	else if (which == "torch")
		a = new Torch;
#endif
	else
		return fprintf(stderr, "usage: %s ours|torch|pool [PASSES [SEQUENCE]]\n", argv[0]), 2;
	for (const Sequence &s : sequences(total)) {
		if (*only != 0 && s.name != only)
			continue;
		std::vector<void *> slots(s.slots, nullptr);
		std::vector<size_t> sizes(s.slots, 0);
		CHECK(cudaDeviceSynchronize());
		a->empty();
		double cold = pass(*a, s, slots, sizes);
		std::vector<double> warm;
		for (int i = 0; i < passes; i++)
			warm.push_back(pass(*a, s, slots, sizes));
		std::sort(warm.begin(), warm.end());
		printf("%s %s %.1f %.1f %zu %zu\n", which.c_str(), s.name.c_str(), warm[warm.size() / 2], cold, a->peak_reserved(), s.peak_live);
		fflush(stdout);
	}
	return 0;
}
