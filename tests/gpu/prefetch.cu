// Times the prefetch of 64 managed buffers on the host: by the driver's call for batches
// itself, by ta_managed_prefetch for all at once, and for one after another. Prints the
// nanoseconds for all 64, the mean of the medians of both directions:
//
//	raw NS
//	batch NS
//	single NS
//
// Each way has buffers of its own, 64 KiB each, so that all have the same to move. The ways take
// turns, and the stream is waited for after each. Needs the library preloaded. Status 3 where
// the driver has no such call, or the device no concurrent access.
#include <algorithm>
#include <chrono>
#include <cuda.h>
#include <vector>
#include "device.h"

using Batch = CUresult (*)(CUdeviceptr *, size_t *, size_t, CUmemLocation *, size_t *, size_t, unsigned long long, CUstream);

struct Place { // ta_location of tieralloc.h
	int kind, id;
};

constexpr int BUFFERS = 64, ROUNDS = 400, WARM = 20;
constexpr size_t BYTES = 64 << 10;
enum Way { RAW, BATCH, SINGLE, WAYS };
static const char *const names[] = {"raw", "batch", "single"};

static cudaStream_t stream;
static Batch raw;
static int (*prefetch)(void *const *, const size_t *, size_t, const Place *, size_t, void *);
static void *(*managed_malloc)(size_t, int);
static int (*managed_free)(void *);

static void check(int result, const char *what)
{
	if (result != 0)
		fprintf(stderr, "%s: CUresult %d\n", what, result), exit(1);
}

struct Set {
	std::vector<void *> p;
	std::vector<CUdeviceptr> raw_p;
	std::vector<size_t> n = std::vector<size_t>(BUFFERS, BYTES);
	std::vector<double> ns[2]; // to the host, to the device

	explicit Set(unsigned seed)
	{
		for (int i = 0; i < BUFFERS; i++) {
			void *q = managed_malloc(BYTES, 0);
			if (q == nullptr)
				perror("ta_managed_malloc"), exit(1);
			for (size_t k = 0; k < BYTES / sizeof(unsigned); k++)
				static_cast<unsigned *>(q)[k] = word(seed + (unsigned)i, k);
			p.push_back(q);
			raw_p.push_back(reinterpret_cast<CUdeviceptr>(q));
		}
	}
	void go(Way way, bool to_device)
	{
		const Place place = {to_device ? 1 : 2, 0};
		CUmemLocation where = {};
		where.type = to_device ? CU_MEM_LOCATION_TYPE_DEVICE : static_cast<CUmemLocationType>(2);
		size_t first = 0;
		CUresult e = CUDA_SUCCESS;
		int ours = 0;
		auto start = std::chrono::steady_clock::now();
		if (way == RAW)
			e = raw(raw_p.data(), n.data(), BUFFERS, &where, &first, 1, 0, stream);
		else if (way == BATCH)
			ours = prefetch(p.data(), n.data(), BUFFERS, &place, 1, stream);
		else
			for (int i = 0; i < BUFFERS; i++)
				ours |= prefetch(&p[i], &n[i], 1, &place, 1, stream);
		std::chrono::duration<double, std::nano> t = std::chrono::steady_clock::now() - start;
		check(e, "cuMemPrefetchBatchAsync");
		check(ours, "ta_managed_prefetch");
		CHECK(cudaStreamSynchronize(stream));
		ns[to_device].push_back(t.count());
	}
	double median() const
	{
		double sum = 0;
		for (std::vector<double> v : ns) {
			v.erase(v.begin(), v.begin() + WARM);
			std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
			sum += v[v.size() / 2];
		}
		return sum / 2;
	}
	// The contents are the same after all the moves, as the device sees them.
	void verify_all(unsigned seed)
	{
		Wrong *wrong;
		CHECK(cudaMallocHost(&wrong, sizeof *wrong));
		wrong->found = 0;
		for (int i = 0; i < BUFFERS; i++)
			verify<<<BLOCKS, THREADS, 0, stream>>>(static_cast<unsigned *>(p[i]), BYTES / sizeof(unsigned), seed + (unsigned)i, wrong);
		CHECK(cudaGetLastError());
		CHECK(cudaStreamSynchronize(stream));
		if (wrong->found)
			fprintf(stderr, "other values after the prefetches\n"), exit(1);
		CHECK(cudaFreeHost(wrong));
	}
};

int main()
{
	int concurrent = 0;
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	raw = driver ? reinterpret_cast<Batch>(dlsym(driver, "cuMemPrefetchBatchAsync")) : nullptr;
	if (raw == nullptr || !concurrent)
		return fprintf(stderr, raw ? "no concurrent access to managed memory\n" : "the driver has no cuMemPrefetchBatchAsync\n"), 3;
	Library::find(prefetch, "ta_managed_prefetch");
	Library::find(managed_malloc, "ta_managed_malloc");
	Library::find(managed_free, "ta_managed_free");
	stream = new_stream();
	{
		Set sets[WAYS] = {Set(100), Set(200), Set(300)};
		for (int r = 0; r < WARM + ROUNDS; r++)
			for (int to_device = 1; to_device >= 0; to_device--)
				for (int k = 0; k < WAYS; k++) {
					int way = (r + k) % WAYS;
					sets[way].go(static_cast<Way>(way), to_device != 0);
				}
		for (int way = 0; way < WAYS; way++) {
			sets[way].verify_all(100u * (unsigned)(way + 1));
			printf("%s %.0f\n", names[way], sets[way].median());
			for (void *q : sets[way].p)
				check(managed_free(q), "ta_managed_free");
		}
	}
	return 0;
}
