// Times the first cycle of the sequence transformer (sequences.h) in a process that has
// allocated nothing of that kind yet, and prints the nanoseconds per operation.
//
//	warmup cold     each block is a new one of the driver's
//	warmup warm     after ta_cuda_warmup with the cycle's sizes
#include <chrono>
#include <cstring>
#include <map>
#include "sequences.h"
#include "device.h"

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	if (strcmp(how, "cold") != 0 && strcmp(how, "warm") != 0)
		return fprintf(stderr, "usage: %s cold|warm\n", argv[0]), 2;
	size_t free_bytes, total;
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	CHECK(cudaMemGetInfo(&free_bytes, &total));
	cudaStream_t stream = new_stream();
	Library lib;
	const Sequence *s = nullptr;
	std::vector<Sequence> all = sequences(total);
	for (const Sequence &one : all)
		if (one.name == "transformer")
			s = &one;
	const size_t cycle = 2 * s->slots; // each slot once allocated and once freed

	lib.free(lib.alloc(4096, stream), 4096, stream); // the heap is there
	if (strcmp(how, "warm") == 0) {
		std::map<size_t, int> count;
		std::vector<size_t> sizes;
		std::vector<int> counts;
		for (size_t i = 0; i < cycle; i++)
			if (s->ops[i].bytes != 0)
				count[s->ops[i].bytes]++;
		for (auto [bytes, n] : count)
			sizes.push_back(bytes), counts.push_back(n);
		if (lib.warmup(0, sizes.data(), counts.data(), (int)sizes.size()) != 0)
			return perror("ta_cuda_warmup"), 1;
	}
	std::vector<void *> slots(s->slots, nullptr);
	std::vector<size_t> held(s->slots, 0);
	auto start = std::chrono::steady_clock::now();
	for (size_t i = 0; i < cycle; i++) {
		const Op &op = s->ops[i];
		if (op.bytes != 0)
			slots[op.slot] = lib.alloc(held[op.slot] = op.bytes, stream);
		else
			lib.free(slots[op.slot], held[op.slot], stream);
	}
	std::chrono::duration<double, std::nano> t = std::chrono::steady_clock::now() - start;
	printf("%.1f\n", t.count() / (double)cycle);
	return 0;
}
