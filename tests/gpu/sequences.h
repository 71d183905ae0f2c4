// The allocation sequences that the device heap is measured with. Each is a list of
// operations, made from a fixed seed before the clock runs, so that every allocator
// serves the same.
//
// Sources: same, large, transformer, pressure and variable are the scenarios that Genesis
// publishes factors for (its documentation names them without their sizes; these are as
// the README states); random is RMM's random allocations benchmark (73 of 100 operations
// allocate).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

struct Op {
	uint32_t slot;
	size_t bytes; // 0: free the slot
};

struct Sequence {
	std::string name;
	uint32_t slots;
	std::vector<Op> ops; // every slot is free at the end
	size_t peak_live = 0;
};

constexpr size_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

class Maker
{
  public:
	Maker(std::string name, uint32_t slots) : live(slots, 0)
	{
		s.name = std::move(name), s.slots = slots;
	}

	void alloc(uint32_t slot, size_t n)
	{
		s.ops.push_back({slot, n});
		live[slot] = n, now += n;
		s.peak_live = std::max(s.peak_live, now);
	}
	void free(uint32_t slot)
	{
		s.ops.push_back({slot, 0});
		now -= live[slot], live[slot] = 0;
	}
	size_t held(uint32_t slot) const { return live[slot]; }
	size_t total() const { return now; }
	Sequence done()
	{
		for (uint32_t i = 0; i < live.size(); i++)
			if (live[i] != 0)
				free(i);
		return std::move(s);
	}

  private:
	Sequence s;
	std::vector<size_t> live;
	size_t now = 0;
};

inline size_t log_uniform(std::mt19937_64 &r, double low, double high)
{
	std::uniform_real_distribution<double> d(std::log(low), std::log(high));
	return static_cast<size_t>(std::exp(d(r)));
}

// random_allocations: 73 of 100 operations allocate up to most bytes, with at most cap in use.
inline Sequence random_allocations(
	std::string name, size_t most, size_t cap, int count, uint64_t seed)
{
	std::mt19937_64 r(seed);
	Maker m(std::move(name), static_cast<uint32_t>(count));
	std::vector<uint32_t> used;
	uint32_t next = 0;
	for (int i = 0; i < count; i++) {
		size_t n = 1 + r() % most;
		if (used.empty() || (r() % 100 < 73 && m.total() + n <= cap)) {
			m.alloc(next, n);
			used.push_back(next++);
		} else {
			size_t k = r() % used.size();
			m.free(used[k]);
			used[k] = used.back();
			used.pop_back();
		}
	}
	return m.done();
}

inline std::vector<Sequence> sequences(size_t device_bytes)
{
	std::vector<Sequence> all;
	{
		Maker m("same_size", 10);
		for (int c = 0; c < 500; c++) {
			for (uint32_t i = 0; i < 10; i++)
				m.alloc(i, 4 * MiB);
			for (uint32_t i = 0; i < 10; i++)
				m.free(i);
		}
		all.push_back(m.done());
	}
	{
		Maker m("large", 20);
		for (int c = 0; c < 200; c++) {
			for (uint32_t i = 0; i < 20; i++)
				m.alloc(i, (4 + 8 * i) * MiB);
			for (uint32_t i = 0; i < 20; i++)
				m.free(i);
		}
		all.push_back(m.done());
	}
	{
		Maker m("transformer", 60);
		std::mt19937_64 r(3);
		std::vector<size_t> sizes;
		for (int i = 0; i < 60; i++)
			sizes.push_back((4 + r() % 317) * MiB);
		for (int c = 0; c < 100; c++) {
			for (uint32_t i = 0; i < 60; i++)
				m.alloc(i, sizes[i]);
			for (uint32_t i = 60; i-- > 0;)
				m.free(i);
		}
		all.push_back(m.done());
	}
	{
		uint32_t n = static_cast<uint32_t>(device_bytes / 10 * 8 / GiB);
		Maker m("pressure", n);
		std::mt19937_64 r(4);
		for (uint32_t i = 0; i < n; i++)
			m.alloc(i, GiB);
		for (int c = 0; c < 2000; c++) {
			uint32_t i = static_cast<uint32_t>(r() % n);
			m.free(i);
			m.alloc(i, GiB / 2 + r() % (GiB / 2));
		}
		all.push_back(m.done());
	}
	{
		Maker m("variable", 128);
		std::mt19937_64 r(5);
		for (int c = 0; c < 10000; c++) {
			uint32_t i = static_cast<uint32_t>(r() % 128);
			if (m.held(i) != 0)
				m.free(i);
			m.alloc(i, log_uniform(r, 512, 64.0 * MiB));
		}
		all.push_back(m.done());
	}
	{
		Maker m("grad_accum", 200);
		std::mt19937_64 r(6);
		std::vector<size_t> sizes;
		for (int i = 0; i < 200; i++)
			sizes.push_back(log_uniform(r, 16.0 * KiB, 32.0 * MiB));
		for (int c = 0; c < 50; c++)
			for (uint32_t i = 0; i < 200; i++) {
				m.alloc(i, sizes[i]); // a window of 40 tensors slides over 200
				if (i >= 40)
					m.free(i - 40);
				if (i == 199)
					for (uint32_t k = 160; k < 200; k++)
						m.free(k);
			}
		all.push_back(m.done());
	}
	all.push_back(random_allocations("random_4M", 4 * MiB, 16 * GiB, 20000, 7));
	all.push_back(random_allocations("random_64M", 64 * MiB, 16 * GiB, 20000, 8));
	return all;
}
