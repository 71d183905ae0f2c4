// An ordinary CUDA program: allocates, launches, frees, and checks what it computed.
// Prints the nanoseconds that a cudaMalloc and a cudaFree took together, with the device
// idle at each free and with a kernel pending. Usage: loop [ROUNDS]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call) \
	do { \
		cudaError_t e_ = (call); \
		if (e_ != cudaSuccess) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_)); \
			exit(1); \
		} \
	} while (0)

__global__ void fill(unsigned *p, size_t n, unsigned v)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
		p[i] = v + (unsigned)i;
}

__global__ void spin(long long cycles)
{
	long long start = clock64();
	while (clock64() - start < cycles)
		;
}

using Clock = std::chrono::steady_clock;

static double ns(Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double, std::nano>(b - a).count(); }

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 200;
	const size_t sizes[] = {4096, 200000, 3 << 20, 40 << 20, 300 << 20};
	CHECK(cudaFree(nullptr));
	for (int pending = 0; pending < 2; pending++) {
		double spent = 0;
		long calls = 0;
		for (int r = 0; r < rounds; r++)
			for (size_t bytes : sizes) {
				unsigned *p, last = 0;
				size_t n = bytes / 4;
				auto t0 = Clock::now();
				CHECK(cudaMalloc(&p, bytes));
				auto t1 = Clock::now();
				fill<<<132, 256>>>(p, n, (unsigned)r);
				CHECK(cudaMemcpy(&last, p + n - 1, 4, cudaMemcpyDeviceToHost));
				if (last != (unsigned)r + (unsigned)(n - 1))
					fprintf(stderr, "wrong result\n"), exit(1);
				if (pending)
					spin<<<1, 1>>>(100000);
				auto t2 = Clock::now();
				CHECK(cudaFree(p));
				auto t3 = Clock::now();
				spent += ns(t0, t1) + ns(t2, t3);
				calls++;
			}
		CHECK(cudaDeviceSynchronize());
		printf("%s %.0f\n", pending ? "pending" : "idle", spent / calls);
	}
	return 0;
}
