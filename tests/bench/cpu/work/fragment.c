// Fragmentation over time: phases of different sizes, of each of which one block in sixteen
// survives to the end. The steady figure is taken while the survivors live, so that it tells
// how much else has to stay for their sake.
#include "work.h"

#define PHASES   14
#define BYTES    (24l << 20) // of a phase at the usual scale
#define SURVIVOR 16

static const size_t sizes[PHASES] = {
	48, 200, 1024, 96, 4096, 16384, 320, 64, 2000, 700, 32768, 32, 9000, 144};

int main(int argc, char **argv)
{
	uint64_t sum = 0, random = seed(0);
	begin(argc, argv);
	long bytes = scaled(BYTES), survivors = 0;
	size_t room = (size_t)bytes / 24 + 1;
	struct parcel **live = table(room, sizeof *live),
				  **kept = table(room * PHASES / SURVIVOR + PHASES, sizeof *kept);
	for (int phase = 0; phase < PHASES; phase++) {
		// Sizes vary by a fourth around the one of the phase.
		size_t size = sizes[phase], low = size - size / 8, high = size + size / 8 + 1;
		long n = bytes / (long)size + 1;
		for (long i = 0; i < n; i++) {
			uint64_t r = next(&random);
			live[i] = pack(between(r, low, high), r);
		}
		// A second helping in the holes of the first.
		for (long i = 0; i < n; i += 2) {
			uint64_t r = next(&random);
			sum += unpack(live[i]);
			live[i] = pack(between(r, low, high), r);
		}
		for (long i = 0; i < n; i++) {
			if (i % SURVIVOR == SURVIVOR / 2)
				kept[survivors++] = live[i];
			else
				sum += unpack(live[i]);
		}
	}
	steady();
	for (long i = 0; i < survivors; i++)
		sum += unpack(kept[i]);
	return finish(sum);
}
