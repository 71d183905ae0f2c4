// What the programs here share: checked calls, kernels that fill and check blocks, the
// time that a kernel takes, and the library's own functions.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/types.h>

#define CHECK(call) \
	do { \
		cudaError_t e_ = (call); \
		if (e_ != cudaSuccess) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_)); \
			exit(1); \
		} \
	} while (0)

// A word of the block that has the number v: it tells the block, and the place in it.
__host__ __device__ inline unsigned word(unsigned v, size_t i)
{
	return v + (unsigned)i * 2654435761u;
}

// What a kernel found wrong, in pinned memory. Any of the wrong words may be the one told of.
struct Wrong {
	unsigned found, number, expected, got;
};

__global__ void fill(unsigned *p, size_t n, unsigned v)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
		 i += gridDim.x * (size_t)blockDim.x)
		p[i] = word(v, i);
}

__global__ void verify(const unsigned *p, size_t n, unsigned v, Wrong *wrong)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
		 i += gridDim.x * (size_t)blockDim.x)
		if (p[i] != word(v, i)) {
			wrong->number = v;
			wrong->expected = word(v, i);
			wrong->got = p[i];
			wrong->found = 1;
		}
}

__global__ void spin(long long cycles)
{
	long long start = clock64();
	while (clock64() - start < cycles)
		;
}

// Writes the block over and over until the time is up, and once more after it.
__global__ void late(volatile unsigned *p, size_t n, unsigned v, long long cycles)
{
	long long start = clock64();
	bool last;
	do {
		last = clock64() - start >= cycles;
		for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
			 i += gridDim.x * (size_t)blockDim.x)
			p[i] = word(v, i);
	} while (!last);
}

// The same for one word of host memory, at the end alone.
__global__ void tell(volatile unsigned *host, unsigned v, long long cycles)
{
	long long start = clock64();
	while (clock64() - start < cycles)
		;
	*host = v;
	__threadfence_system();
}

// Few enough blocks to leave most of the device to other streams.
constexpr int BLOCKS = 32, THREADS = 256;

// How many cycles of clock64 the current device does in a time. Clocks change, so it is
// about that time.
inline long long cycles_for(double ms)
{
	const long long probe = 50000000;
	cudaEvent_t a, b;
	float took;
	CHECK(cudaEventCreate(&a));
	CHECK(cudaEventCreate(&b));
	spin<<<1, 1>>>(4 * probe); // the clock rises meanwhile
	CHECK(cudaEventRecord(a));
	spin<<<1, 1>>>(probe);
	CHECK(cudaEventRecord(b));
	CHECK(cudaEventSynchronize(b));
	CHECK(cudaEventElapsedTime(&took, a, b));
	CHECK(cudaEventDestroy(a));
	CHECK(cudaEventDestroy(b));
	return (long long)((double)probe / took * ms);
}

// Loads every kernel: the first launch of one may wait for the whole device.
inline void load_kernels()
{
	unsigned *p;
	Wrong *w;
	CHECK(cudaMalloc(&p, 4096));
	CHECK(cudaMallocHost(&w, sizeof *w));
	fill<<<BLOCKS, THREADS>>>(p, 1024, 0);
	verify<<<BLOCKS, THREADS>>>(p, 1024, 0, w);
	late<<<BLOCKS, THREADS>>>(p, 1024, 0, 1);
	tell<<<1, 1>>>(&w->got, 0, 1);
	spin<<<1, 1>>>(1);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFreeHost(w));
	CHECK(cudaFree(p));
}

inline cudaStream_t new_stream()
{
	cudaStream_t s;
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	return s;
}

// Whether the stream has work that is not done.
inline bool pending(cudaStream_t s)
{
	cudaError_t e = cudaStreamQuery(s);
	if (e != cudaErrorNotReady)
		CHECK(e);
	return e == cudaErrorNotReady;
}

// The functions of tieralloc.h, which must be preloaded.
struct Library {
	void *(*malloc_)(ssize_t, int, void *);
	void (*free_)(void *, ssize_t, int, void *);
	void (*record)(void *, void *);
	int (*warmup)(int, const size_t *, const int *, int);

	template <class T> static void find(T &f, const char *name)
	{
		f = reinterpret_cast<T>(dlsym(RTLD_DEFAULT, name));
		if (f == nullptr)
			fprintf(stderr, "the library is not preloaded: no %s\n", name), exit(1);
	}
	Library()
	{
		find(malloc_, "ta_cuda_malloc"), find(free_, "ta_cuda_free");
		find(record, "ta_cuda_record_stream"), find(warmup, "ta_cuda_warmup");
	}
	void *alloc(size_t n, cudaStream_t s) const
	{
		void *p = malloc_((ssize_t)n, 0, s);
		if (p == nullptr)
			fprintf(stderr, "ta_cuda_malloc(%zu) failed\n", n), exit(1);
		return p;
	}
	void free(void *p, size_t n, cudaStream_t s) const { free_(p, (ssize_t)n, 0, s); }
};
