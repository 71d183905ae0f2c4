// A plug-in that allocates by the CUDA runtime, and is built with -O2: gpu_alloc and
// gpu_free jump to the runtime's functions, which then see another object's return
// address. With a runtime inside, or linked with one.
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **, size_t), cudaFree(void *), cudaSetDevice(int), cudaGetLastError(void);
static void *kept;

int gpu_alloc(void **p, size_t n) { return cudaMalloc(p, n); }
int gpu_free(void *p) { return cudaFree(p); }
int gpu_device(int d) { return cudaSetDevice(d); }
int gpu_last(void) { return cudaGetLastError(); }

void gpu_functions(int (**alloc)(void **, size_t), int (**release)(void *))
{
	*alloc = cudaMalloc;
	*release = cudaFree;
}

// Calls from here; the last block goes back when the plug-in does.
void gpu_keep(void)
{
	int e = cudaMalloc(&kept, 1000), f = cudaFree(kept);
	printf("%d %d", e, f);
	e = cudaMalloc(&kept, 1000);
	printf(" %d\n", e);
}

__attribute__((destructor)) static void end(void)
{
	if (kept != NULL)
		printf("at the end %d\n", cudaFree(kept));
}
