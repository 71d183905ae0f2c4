// No block is handed out while work that was submitted before its free may still touch
// it: a kernel of about 100 ms writes into a block that is freed meanwhile, and what other
// streams then write into new blocks of the same size must stay.
//
//	reuse plain sync|event|driver  cudaMalloc and cudaFree. sync: they return when the device is
//	                               idle, so that what the kernel told the host is there; event:
//	                               at once; driver: as the driver has it (without the library)
//	reuse ordered                  ta_cuda_malloc, ta_cuda_free and ta_cuda_record_stream
//	reuse peer sync|event          as plain; the kernel runs on another device
//	reuse control                  a block is freed on the wrong stream: it must be seen
//	reuse outside                  writes behind a block, for a memory checker to find
//
// The last line of the output is a summary. Exit status: 0 all held, 1 something did not.
#include <cstring>
#include "device.h"

static const size_t sizes[] = {3000, 200000, 1 << 20, 5 << 20, 64 << 20};
constexpr int SIZES = sizeof sizes / sizeof *sizes, NEW = 4, ROUNDS = 2;

static long long cycles; // of the late kernel
static int failures, freed, still_pending;

static void expect(bool held, const char *what, size_t bytes)
{
	if (held)
		return;
	failures++;
	printf("%zu bytes: %s\n", bytes, what);
}

// New blocks of one size, each filled with a number of its own on a stream.
struct Blocks {
	unsigned *p[NEW];
	size_t words;

	template <class F> Blocks(F alloc, size_t bytes, cudaStream_t s) : words(bytes / 4)
	{
		for (int i = 0; i < NEW; i++) {
			p[i] = (unsigned *)alloc();
			fill<<<BLOCKS, THREADS, 0, s>>>(p[i], words, 1000u + i);
		}
		CHECK(cudaGetLastError());
		CHECK(cudaStreamSynchronize(s));
	}
	// Whether their words are still there, when nothing runs any more.
	bool hold() const
	{
		Wrong *w;
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaMallocHost(&w, sizeof *w));
		*w = {};
		for (int i = 0; i < NEW; i++)
			verify<<<BLOCKS, THREADS>>>(p[i], words, 1000u + i, w);
		CHECK(cudaDeviceSynchronize());
		bool held = !w->found;
		CHECK(cudaFreeHost(w));
		return held;
	}
};

enum Mode { SYNC, EVENT, DRIVER };

// One cudaFree under a kernel that runs on stream a of device `at`.
static void plain_once(Mode mode, size_t bytes, int at, cudaStream_t a, cudaStream_t b)
{
	unsigned *p;
	CHECK(cudaMalloc(&p, bytes));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaSetDevice(at));
	late<<<BLOCKS, THREADS, 0, a>>>(p, bytes / 4, 1, cycles);
	CHECK(cudaGetLastError());
	CHECK(cudaSetDevice(0));
	expect(pending(a), "the kernel ended before the free: nothing was tested", bytes);
	CHECK(cudaFree(p));
	bool left = pending(a);
	freed++, still_pending += left;
	if (mode == SYNC)
		expect(!left, "cudaFree returned before the kernel's end", bytes);
	else if (mode == EVENT)
		expect(left, "cudaFree waited for the kernel", bytes);
	auto alloc = [bytes] {
		void *q;
		CHECK(cudaMalloc(&q, bytes));
		return q;
	};
	Blocks fresh(alloc, bytes, b);
	CHECK(cudaStreamSynchronize(a));
	expect(fresh.hold(), "a new block was overwritten", bytes);
	for (unsigned *q : fresh.p)
		CHECK(cudaFree(q));
}

// What a kernel has written for the host is there when cudaFree has returned.
static void host_once(size_t bytes, cudaStream_t a, volatile unsigned *host)
{
	void *p;
	CHECK(cudaMalloc(&p, bytes));
	*host = 0;
	tell<<<1, 1, 0, a>>>(host, 12345, cycles);
	CHECK(cudaGetLastError());
	expect(*host == 0, "the kernel ended before the free: nothing was tested", bytes);
	CHECK(cudaFree(p));
	expect(*host == 12345, "the host read its result too early", bytes);
}

static void plain(Mode mode)
{
	cudaStream_t a = new_stream(), b = new_stream();
	unsigned *host;
	CHECK(cudaMallocHost(&host, sizeof *host));
	for (int r = 0; r < ROUNDS; r++)
		for (size_t bytes : sizes) {
			plain_once(mode, bytes, 0, a, b);
			if (mode != EVENT)
				host_once(bytes, a, host);
		}
}

static void peer(Mode mode)
{
	int can = 0;
	CHECK(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (!can)
		fprintf(stderr, "device 1 has no access to device 0\n"), exit(1);
	CHECK(cudaSetDevice(1));
	CHECK(cudaDeviceEnablePeerAccess(0, 0));
	load_kernels();
	cycles = cycles_for(100);
	cudaStream_t a = new_stream();
	CHECK(cudaSetDevice(0));
	cudaStream_t b = new_stream();
	for (int r = 0; r < ROUNDS; r++)
		for (size_t bytes : sizes)
			plain_once(mode, bytes, 1, a, b);
}

// How a block is freed while a kernel writes into it, and where it may go.
enum Way {
	SAME,     // freed on the kernel's stream, new blocks on the same
	OTHER,    // and on another one
	RECORDED, // allocated on another stream, and the kernel's is recorded
	UNKNOWN   // it is not: that is the program's mistake, and new blocks are overwritten
};

static void ordered_once(const Library &lib, Way way, size_t bytes, cudaStream_t a, cudaStream_t b)
{
	cudaStream_t own = way == RECORDED || way == UNKNOWN ? b : a;
	cudaEvent_t ready;
	CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
	unsigned *p = (unsigned *)lib.alloc(bytes, own);
	fill<<<BLOCKS, THREADS, 0, own>>>(p, bytes / 4, 2);
	CHECK(cudaEventRecord(ready, own));
	CHECK(cudaStreamWaitEvent(a, ready, 0));
	late<<<BLOCKS, THREADS, 0, a>>>(p, bytes / 4, 1, cycles);
	CHECK(cudaGetLastError());
	expect(pending(a), "the kernel ended before the free: nothing was tested", bytes);
	if (way == RECORDED)
		lib.record(p, a);
	lib.free(p, bytes, own);
	freed++, still_pending += pending(a);
	cudaStream_t next = way == SAME ? a : b;
	Blocks fresh([&] { return lib.alloc(bytes, next); }, bytes, next);
	CHECK(cudaDeviceSynchronize());
	bool held = fresh.hold();
	static const char *const lost[] = {
		"a new block on the same stream was overwritten",
		"a new block on another stream was overwritten",
		"a new block was overwritten though the kernel's stream was recorded",
		"a mistake was not seen: the test is blind",
	};
	expect(held == (way != UNKNOWN), lost[way], bytes);
	for (unsigned *q : fresh.p)
		lib.free(q, bytes, next);
	CHECK(cudaEventDestroy(ready));
	CHECK(cudaDeviceSynchronize());
}

static void ordered(bool control)
{
	Library lib;
	cudaStream_t a = new_stream(), b = new_stream();
	if (control) {
		ordered_once(lib, UNKNOWN, 200000, a, b);
		return;
	}
	for (int r = 0; r < ROUNDS; r++)
		for (size_t bytes : sizes)
			for (Way way : {SAME, OTHER, RECORDED})
				ordered_once(lib, way, bytes, a, b);
}

static int outside()
{
	unsigned *p;
	CHECK(cudaMalloc(&p, 4 << 20));
	fill<<<1, 1>>>(p + ((4 << 20) - 4) / 4, 64 << 10, 0);
	cudaError_t e = cudaDeviceSynchronize();
	printf("%s\n", cudaGetErrorString(e));
	return e != cudaSuccess;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *way = argc > 2 ? argv[2] : "sync";
	Mode mode = strcmp(way, "event") == 0 ? EVENT : strcmp(way, "driver") == 0 ? DRIVER : SYNC;
	setvbuf(stdout, nullptr, _IOLBF, 0);
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	if (strcmp(what, "outside") == 0)
		return outside();
	load_kernels();
	cycles = cycles_for(100);
	if (strcmp(what, "plain") == 0)
		plain(mode);
	else if (strcmp(what, "peer") == 0)
		peer(mode);
	else if (strcmp(what, "ordered") == 0)
		ordered(false);
	else if (strcmp(what, "control") == 0)
		ordered(true);
	else
		return fprintf(stderr, "usage: %s plain|peer sync|event|driver, ordered, control, outside\n", argv[0]), 2;
	CHECK(cudaDeviceSynchronize());
	printf("%d frees under a kernel, %d returned before its end, %d failures\n", freed, still_pending, failures);
	return failures != 0;
}
