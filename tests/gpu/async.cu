// cudaMallocAsync and cudaFreeAsync: no block is handed out while work that is ordered before its
// free may still touch it. It holds for the driver's pool as for the library's heap
// (TA_CUDA_ASYNC=heap).
//
//	async under          a kernel of about 100 ms writes into a block that is freed meanwhile, on its
//	                     stream or on one that waits for it; new blocks on either stream keep theirs
//	async control        the same, freed on a stream that does not wait: it must be seen
//	async storm SECONDS  blocks of all sizes are filled on one stream, checked and freed on another
//	async time           nanoseconds of a pair on one stream
//
// The last line of the output is a summary. Exit status: 0 all held, 1 something did not.
#include <chrono>
#include <cstring>
#include <unordered_set>
#include <vector>
#include "device.h"

static const size_t sizes[] = {3000, 200000, 1 << 20, 5 << 20, 64 << 20};
constexpr int NEW = 4, ROUNDS = 3, STREAMS = 8, SLOTS = 64;
static int failures, freed, still_pending;

static unsigned *take(size_t bytes, cudaStream_t s)
{
	void *p = nullptr;
	CHECK(cudaMallocAsync(&p, bytes, s));
	return (unsigned *)p;
}

static Wrong *new_wrong()
{
	Wrong *w;
	CHECK(cudaMallocHost(&w, sizeof *w));
	*w = {};
	return w;
}

static void wait_for(cudaStream_t s, cudaStream_t other, cudaEvent_t e)
{
	CHECK(cudaEventRecord(e, other));
	CHECK(cudaStreamWaitEvent(s, e, 0));
}

// waits: the free is ordered after the kernel. next: the stream of the new blocks.
static bool under_once(size_t bytes, cudaStream_t a, cudaStream_t freeing, bool waits,
	cudaStream_t next, long long cycles, Wrong *w)
{
	cudaEvent_t e;
	unsigned *p = take(bytes, a), *fresh[NEW];
	CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	late<<<BLOCKS, THREADS, 0, a>>>(p, bytes / 4, 1, cycles);
	CHECK(cudaGetLastError());
	if (waits && freeing != a)
		wait_for(freeing, a, e);
	if (!pending(a))
		failures++, printf("%zu bytes: the kernel ended before the free\n", bytes);
	CHECK(cudaFreeAsync(p, freeing));
	freed++, still_pending += pending(a);
	for (int i = 0; i < NEW; i++) {
		fresh[i] = take(bytes, next);
		fill<<<BLOCKS, THREADS, 0, next>>>(fresh[i], bytes / 4, 1000u + i);
	}
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	w->found = 0;
	for (int i = 0; i < NEW; i++)
		verify<<<BLOCKS, THREADS, 0, next>>>(fresh[i], bytes / 4, 1000u + i, w);
	CHECK(cudaDeviceSynchronize());
	for (unsigned *q : fresh)
		CHECK(cudaFreeAsync(q, next));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaEventDestroy(e));
	return !w->found;
}

static void under(bool control)
{
	cudaStream_t a = new_stream(), b = new_stream();
	Wrong *w = new_wrong();
	long long cycles = cycles_for(100);
	if (control) {
		if (under_once(200000, a, b, false, b, cycles, w))
			failures++, printf("a mistake was not seen: the test is blind\n");
		return;
	}
	for (int r = 0; r < ROUNDS; r++)
		for (size_t bytes : sizes)
			for (cudaStream_t freeing : {a, b})
				for (cudaStream_t next : {a, b})
					if (!under_once(bytes, a, freeing, true, next, cycles, w))
						failures++, printf("%zu bytes, freed on %s, new on %s: overwritten\n", bytes,
										freeing == a ? "a" : "b", next == a ? "a" : "b");
}

static void storm(int seconds)
{
	struct Slot {
		unsigned *p;
		size_t bytes;
		unsigned number;
		int stream;
	} slots[SLOTS] = {};
	std::vector<cudaStream_t> streams;
	std::unordered_set<void *> seen;
	cudaEvent_t e;
	Wrong *w = new_wrong();
	unsigned long long x = 88172645463325252ull;
	long operations = 0, allocations = 0, reused = 0;
	CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	for (int i = 0; i < STREAMS; i++)
		streams.push_back(new_stream());
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
	while (std::chrono::steady_clock::now() < end) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		Slot &t = slots[(x >> 33) % SLOTS];
		int s = (int)((x >> 40) % STREAMS);
		operations++;
		if (t.p == nullptr) {
			t.bytes = sizes[(x >> 50) % 4] + ((x >> 45) & 7) * 512;
			t.p = take(t.bytes, streams[s]);
			t.stream = s, t.number = (unsigned)operations;
			allocations++, reused += !seen.insert(t.p).second;
			fill<<<BLOCKS, THREADS, 0, streams[s]>>>(t.p, t.bytes / 4, t.number);
			continue;
		}
		if (s != t.stream)
			wait_for(streams[s], streams[t.stream], e);
		verify<<<BLOCKS, THREADS, 0, streams[s]>>>(t.p, t.bytes / 4, t.number, w);
		if (operations % 64 == 0)
			CHECK(cudaFree(t.p));
		else
			CHECK(cudaFreeAsync(t.p, streams[s]));
		t.p = nullptr;
		if (operations % 1024 == 0) { // a stream ends, and another one begins
			CHECK(cudaStreamSynchronize(streams[s])); // or its slots' fills would go unordered
			for (Slot &u : slots)
				if (u.p != nullptr && u.stream == s)
					u.stream = (s + 1) % STREAMS;
			CHECK(cudaStreamDestroy(streams[s]));
			streams[s] = new_stream();
		}
		CHECK(cudaGetLastError());
	}
	CHECK(cudaDeviceSynchronize());
	if (w->found)
		failures++, printf("block %u: %#x, not %#x\n", w->number, w->got, w->expected);
	printf("%ld operations, %.1f%% of %ld allocations at a reused address, %d failures\n",
		operations, allocations != 0 ? 100.0 * (double)reused / (double)allocations : 0.0,
		allocations, failures);
}

static void times()
{
	constexpr int PAIRS = 2000;
	uint64_t all = ~0ull;
	cudaMemPool_t pool;
	cudaStream_t s = new_stream();
	double spent = 0;
	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
	for (int round = 0; round < 2; round++, spent = round < 2 ? 0 : spent)
		for (size_t bytes : sizes) {
			auto t = std::chrono::steady_clock::now();
			for (int i = 0; i < PAIRS; i++)
				CHECK(cudaFreeAsync(take(bytes, s), s));
			std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - t;
			spent += took.count() / PAIRS;
			CHECK(cudaStreamSynchronize(s));
		}
	printf("pair %.0f 1\n", spent / (double)(sizeof sizes / sizeof *sizes));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	setvbuf(stdout, nullptr, _IOLBF, 0);
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	if (strcmp(what, "time") == 0)
		return times(), 0;
	load_kernels();
	if (strcmp(what, "storm") == 0)
		return storm(argc > 2 ? atoi(argv[2]) : 10), failures != 0;
	if (strcmp(what, "under") != 0 && strcmp(what, "control") != 0)
		return fprintf(stderr, "usage: %s under|control|storm|time\n", argv[0]), 2;
	under(strcmp(what, "control") == 0);
	printf("%d frees under a kernel, %d returned before its end, %d failures\n", freed,
		still_pending, failures);
	return failures != 0;
}
