// A region of device memory sleeps and wakes (ta_cuda_sleep): its memory goes back to the driver,
// its addresses and contents stay, and a graph captured before replays after. Prints the time of
// each way beside that of a copy over the link.
//
//	regions GIB ROUNDS
#include <algorithm>
#include <chrono>
#include <vector>
#include "device.h"

static double now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

static size_t free_bytes()
{
	size_t f, t;
	CHECK(cudaMemGetInfo(&f, &t));
	return f;
}

template <class F> static F find(const char *name)
{
	F f = (F)dlsym(RTLD_DEFAULT, name);
	if (f == nullptr) {
		fprintf(stderr, "no %s: is the library preloaded?\n", name);
		exit(1);
	}
	return f;
}

static void did(int e, const char *what)
{
	if (e != 0) {
		perror(what);
		exit(1);
	}
}

__global__ void add(unsigned *p, size_t n, unsigned v)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
		 i += gridDim.x * (size_t)blockDim.x)
		p[i] += v;
}

// GB/s of the link by 1 GiB of page-locked memory.
static void link(double *down, double *up)
{
	const size_t n = 1 << 30;
	void *host, *device;
	CHECK(cudaMallocHost(&host, n));
	CHECK(cudaMalloc(&device, n));
	for (int i = 0; i < 3; i++) {
		double a = now();
		CHECK(cudaMemcpy(host, device, n, cudaMemcpyDeviceToHost));
		double b = now();
		CHECK(cudaMemcpy(device, host, n, cudaMemcpyHostToDevice));
		double c = now();
		*down = n / (b - a) / 1e9;
		*up = n / (c - b) / 1e9;
	}
	CHECK(cudaFreeHost(host));
	CHECK(cudaFree(device));
}

int main(int argc, char **argv)
{
	size_t gib = argc > 1 ? strtoul(argv[1], nullptr, 10) : 8;
	int rounds = argc > 2 ? atoi(argv[2]) : 3;
	auto alloc = find<void *(*)(ssize_t, int, void *)>("ta_cuda_malloc");
	auto begin = find<int (*)(int, const char *)>("ta_cuda_region_begin");
	auto end = find<int (*)(int, const char *)>("ta_cuda_region_end");
	auto sleep = find<int (*)(int, const char *, int)>("ta_cuda_sleep");
	auto wake = find<int (*)(int, const char *)>("ta_cuda_wake");
	const size_t n = 1 << 30, words = n / 4;
	cudaStream_t stream;
	Wrong *wrong;
	double down, up;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocHost(&wrong, sizeof *wrong));
	*wrong = {};
	link(&down, &up);
	did(begin(0, "weights"), "ta_cuda_region_begin");
	std::vector<unsigned *> blocks;
	for (size_t i = 0; i < gib; i++) {
		blocks.push_back((unsigned *)alloc(n, 0, stream));
		did(blocks.back() == nullptr, "ta_cuda_malloc");
		fill<<<1024, 256, 0, stream>>>(blocks.back(), words, (unsigned)i);
	}
	did(end(0, "weights"), "ta_cuda_region_end");
	cudaGraph_t graph;
	cudaGraphExec_t replay;
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	add<<<1024, 256, 0, stream>>>(blocks[0], words, 1);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&replay, graph, 0));
	CHECK(cudaStreamSynchronize(stream));
	double to_sleep = 1e9, to_wake = 1e9, first = 0;
	size_t before = free_bytes();
	for (int r = 0; r < rounds; r++) {
		double a = now();
		did(sleep(0, "weights", 1), "ta_cuda_sleep");
		double b = now();
		// The driver needs some for page-locked memory.
		if (free_bytes() < before + gib * n / 100 * 99)
			return fprintf(stderr, "%zu bytes came free\n", free_bytes() - before), 1;
		double c = now();
		did(wake(0, "weights"), "ta_cuda_wake");
		double d = now();
		if (r == 0)
			first = b - a;
		to_sleep = std::min(to_sleep, b - a);
		to_wake = std::min(to_wake, d - c);
		CHECK(cudaGraphLaunch(replay, stream));
		for (size_t i = 0; i < gib; i++)
			verify<<<1024, 256, 0, stream>>>(
				blocks[i], words, (unsigned)i + (i == 0 ? (unsigned)r + 1 : 0), wrong);
		CHECK(cudaStreamSynchronize(stream));
		if (wrong->found)
			return fprintf(stderr, "round %d, block %u: %#x, not %#x\n", r, wrong->number,
					   wrong->got, wrong->expected),
				   1;
	}
	double bytes = (double)gib * (double)n / 1e9, off = 1e9, on = 1e9;
	for (int r = 0; r < 20; r++) {
		double a = now();
		did(sleep(0, "weights", 0), "ta_cuda_sleep");
		double b = now();
		did(wake(0, "weights"), "ta_cuda_wake");
		double c = now();
		off = std::min(off, b - a);
		on = std::min(on, c - b);
	}
	CHECK(cudaGraphLaunch(replay, stream));
	CHECK(cudaStreamSynchronize(stream));
	if (free_bytes() + before / 100 < before)
		return fprintf(stderr, "%zu bytes free, %zu before\n", free_bytes(), before), 1;
	printf("%zu GiB: link %.1f and %.1f GB/s, kept %.1f (first %.1f) and %.1f GB/s, not kept %.1f "
		   "and %.1f ms, %d rounds\n",
		gib, down, up, bytes / to_sleep, bytes / first, bytes / to_wake, off * 1e3, on * 1e3,
		rounds + 20);
	return 0;
}
