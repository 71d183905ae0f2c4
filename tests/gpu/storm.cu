// Threads allocate, fill, check and free on streams that they share, with kernels lagging
// behind. Each block is filled with a number of its own, and checked on its stream before
// it is freed: nobody else may have written into it. Blocks go four ways:
//
//	most     checked and freed on their stream
//	some     still being checked on another stream when they are freed: ta_cuda_record_stream
//	some     handed to another stream, which waits for theirs, and freed there
//	a few    of cudaMalloc and cudaFree, freed with the check pending
//
// Usage: storm [SECONDS [STREAMS [THREADS]]], default 20, 16, 8. The library must be
// preloaded. The last line of the output is a summary. Exit status: 0 all held, 1 not.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>
#include <unordered_set>
#include <vector>
#include "device.h"

constexpr int SLOTS = 24; // blocks of a thread

static std::vector<cudaStream_t> streams;
static long long lag; // cycles of a kernel that makes its stream late
static std::chrono::steady_clock::time_point end_at;

struct Block {
	unsigned *p = nullptr;
	size_t bytes = 0;
	unsigned number = 0;
	cudaStream_t stream = nullptr;
	bool plain = false;
	size_t words() const { return bytes / 4; }
};

class Worker {
public:
	explicit Worker(unsigned id) : random(id + 1), id(id)
	{
		CHECK(cudaMallocHost(&wrong, sizeof *wrong));
		*wrong = {};
		CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
	}
	void run()
	{
		CHECK(cudaSetDevice(0));
		while (std::chrono::steady_clock::now() < end_at && !seen_wrong()) {
			Block &b = blocks[random() % SLOTS];
			b.p == nullptr ? begin(b) : end(b);
			if (++operations % 64 == 0) // no more work in flight than memory for it
				CHECK(cudaStreamSynchronize(any()));
		}
		for (Block &b : blocks)
			if (b.p != nullptr)
				end(b);
		CHECK(cudaGetLastError());
	}
	bool seen_wrong() const { return static_cast<volatile Wrong *>(wrong)->found != 0; }

	long operations = 0, allocations = 0, again = 0; // again: at an address that there was before
	Wrong *wrong;

private:
	cudaStream_t any() { return streams[random() % streams.size()]; }

	size_t size() // log-uniform, 512 bytes to 16 MiB
	{
		std::uniform_real_distribution<double> d(std::log(512.0), std::log(16.0 * (1 << 20)));
		return static_cast<size_t>(std::exp(d(random)));
	}
	void begin(Block &b)
	{
		b.bytes = size();
		b.stream = any();
		b.number = id << 24 | (++count & 0xffffff);
		b.plain = random() % 64 == 0;
		if (b.plain) {
			CHECK(cudaMalloc(&b.p, b.bytes));
		} else {
			b.p = static_cast<unsigned *>(lib.alloc(b.bytes, b.stream));
		}
		allocations++;
		again += !addresses.insert(b.p).second;
		if (random() % 16 == 0)
			spin<<<1, 1, 0, b.stream>>>(lag);
		fill<<<BLOCKS, THREADS, 0, b.stream>>>(b.p, b.words(), b.number);
	}
	void check(const Block &b, cudaStream_t s, bool late)
	{
		if (late)
			spin<<<1, 1, 0, s>>>(lag);
		verify<<<BLOCKS, THREADS, 0, s>>>(b.p, b.words(), b.number, wrong);
	}
	// A stream that does what comes next only after all that b's has been given.
	cudaStream_t follow(const Block &b)
	{
		cudaStream_t s = any();
		CHECK(cudaEventRecord(done, b.stream));
		CHECK(cudaStreamWaitEvent(s, done, 0));
		return s;
	}
	void end(Block &b)
	{
		unsigned way = random() % 8;
		if (b.plain) {
			check(b, b.stream, way == 0);
			CHECK(cudaFree(b.p));
		} else if (way == 0) {
			cudaStream_t s = follow(b);
			check(b, s, true);
			lib.record(b.p, s);
			lib.free(b.p, b.bytes, b.stream);
		} else if (way == 1) {
			cudaStream_t s = follow(b);
			check(b, s, false);
			lib.free(b.p, b.bytes, s);
		} else {
			check(b, b.stream, false);
			lib.free(b.p, b.bytes, b.stream);
		}
		b.p = nullptr;
	}

	Library lib;
	std::mt19937_64 random;
	unsigned id, count = 0;
	cudaEvent_t done;
	Block blocks[SLOTS];
	std::unordered_set<void *> addresses;
};

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 20, n_streams = argc > 2 ? atoi(argv[2]) : 16, n_threads = argc > 3 ? atoi(argv[3]) : 8;
	if (seconds < 1 || n_streams < 1 || n_threads < 1)
		return fprintf(stderr, "usage: %s [SECONDS [STREAMS [THREADS]]]\n", argv[0]), 2;
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	load_kernels();
	lag = cycles_for(0.2);
	for (int i = 0; i < n_streams; i++)
		streams.push_back(new_stream());
	std::vector<Worker *> workers;
	for (int i = 0; i < n_threads; i++)
		workers.push_back(new Worker(static_cast<unsigned>(i)));
	end_at = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
	std::vector<std::thread> threads;
	for (Worker *w : workers)
		threads.emplace_back(&Worker::run, w);
	for (std::thread &t : threads)
		t.join();
	CHECK(cudaDeviceSynchronize());
	long operations = 0, allocations = 0, again = 0;
	int failures = 0;
	for (Worker *w : workers) {
		operations += w->operations, allocations += w->allocations, again += w->again;
		if (w->seen_wrong()) {
			failures++;
			printf("block %#x: expected %#x, found %#x\n", w->wrong->number, w->wrong->expected, w->wrong->got);
		}
	}
	if (again * 8 < allocations) {
		failures++;
		printf("hardly an address was reused: nothing was tested\n");
	}
	printf("%ld operations, %.1f%% of %ld allocations at a reused address, %d failures\n", operations,
		allocations ? 100.0 * (double)again / (double)allocations : 0, allocations, failures);
	return failures != 0;
}
