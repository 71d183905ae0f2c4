// Steps of training a network: each layer's result stays until its gradient has been computed, in
// reverse order, and both ways each layer needs a temporary block. A batch is 7/8 to 9/8 of the
// usual size, so hardly two steps ask for the same blocks.
#include "work.h"

#define LAYERS 14

static const size_t kib[LAYERS] = { // of the layers' results
	24576, 24576, 12288, 12288, 12288, 6144, 6144, 6144, 3072, 3072, 3072, 1536, 512, 64};

int main(int argc, char **argv)
{
	uint64_t sum = 0, random = seed(0);
	begin(argc, argv);
	long steps = scaled(24);
	for (long i = 0; i < steps; i++) {
		struct block result[LAYERS], gradient = {NULL, 0, 0};
		size_t batch = between(next(&random), 896, 1153); // bytes of each KiB
		for (int k = 0; k < LAYERS; k++) {
			struct block temporary = get(kib[k] * batch, next(&random));
			result[k] = get(kib[k] * batch, next(&random));
			sum += put(&temporary);
		}
		for (int k = LAYERS - 1; k >= 0; k--) {
			struct block temporary = get(kib[k] * batch, next(&random));
			sum += put(&gradient);
			gradient = get(kib[k] * batch, next(&random));
			sum += put(&temporary) + put(&result[k]);
		}
		sum += put(&gradient);
	}
	return finish(sum);
}
