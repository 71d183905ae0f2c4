// A program that is linked with the shared CUDA runtime: what it sees of errors, and how
// often its calls come as far as the runtime.
#include "common.h"
#include "tieralloc.h"

CUresult cudaMalloc(void **, size_t), cudaFree(void *), cudaGetLastError(void), cudaSetDevice(int);

static void control(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
	CONTROL(CONTROL_FETCH)
}

static void errors(void)
{
	void *p, *q;
	control();
	OK(cudaMalloc(&p, 4 * MIB));
	OK(cudaFree(p));
	OK(cudaMalloc(&p, 4 * MIB));
	OK(cudaMalloc(&q, 1000));
	fake.fake_fail("cuMemAlloc_v2", 1, 700);
	SHOW(cudaMalloc(&q, 40 * MIB));
	SHOW(cudaGetLastError());
	SHOW(cudaGetLastError());
	SHOW(cudaMalloc(&q, 1ul << 40));
	SHOW(cudaGetLastError());
	fake.fake_fail("cuCtxSynchronize", 1, 700);
	fake.fake_fail("cuMemFree_v2", 1, 700);
	SHOW(cudaFree(p));
	SHOW(cudaGetLastError());
	SHOW(cudaGetLastError());
}

// The first call fails, or what could be tried before it: the program sees its own
// errors, and later calls are served.
static void first(void)
{
	void *p;
	control();
	OK(cudaSetDevice(0));
	fake.fake_fail("cuMemGetInfo_v2", 1, 700);
	fake.fake_fail("cuMemAlloc_v2", 1, 700);
	for (int i = 0; i < 3; i++) {
		SHOW(cudaMalloc(&p, 4 * MIB));
		SHOW(cudaGetLastError());
	}
	SHOW(cudaFree(p));
	unsigned long before = fake.fake_calls("cuInit");
	for (int i = 0; i < 100; i++) {
		OK(cudaMalloc(&p, 4 * MIB));
		OK(cudaFree(p));
	}
	unsigned long calls = fake.fake_calls("cuInit") - before;
	CHECK(ours("ta_get_stats") == NULL || calls < 10, "%lu calls of the runtime for 100 pairs",
		calls);
}

// The figure of the first device, from the report.
static double figure(const char *key)
{
	static char text[1 << 18];
	char quoted[64];
	size_t (*json)(char *, size_t) = (size_t(*)(char *, size_t))ours("ta_stats_json");
	CHECK(json != NULL && json(text, sizeof text) < sizeof text);
	snprintf(quoted, sizeof quoted, "\"%s\":", key);
	char *devices = strstr(text, "\"devices\":"),
		 *at = devices != NULL ? strstr(devices, quoted) : NULL;
	CHECK(at != NULL, "%s in %s", key, text);
	return atof(at + strlen(quoted));
}

// Each call counts once: three allocations of which one is refused, three frees of which
// one is the second of its block.
static void figures(void)
{
	void *p, *q;
	control();
	OK(cudaMalloc(&p, 4 * MIB));
	OK(cudaFree(p));
	OK(cudaMalloc(&p, 4 * MIB));
	SHOW(cudaMalloc(&q, 1ul << 40));
	OK(cudaFree(p));
	SHOW(cudaFree(p));
	printf("alloc_calls %.0f refused %.0f free_calls %.0f frees_invalid %.0f\n",
		figure("alloc_calls"), figure("refused"), figure("free_calls"), figure("frees_invalid"));
}

#define PAIR \
	{ \
		void *p; \
		OK(cudaMalloc(&p, 4 * MIB)); \
		OK(cudaFree(p)); \
	}
#define PAIRS PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR

static void many(void)
{
	PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS PAIRS
}

// However many places call, the runtime is found out once, and not asked again.
static void sites(void)
{
	control();
	OK(cudaSetDevice(0));
	many();
	unsigned long before = fake.fake_calls("cuInit"), infos = fake.fake_calls("cuMemGetInfo_v2");
	for (int i = 0; i < 20; i++)
		many();
	unsigned long calls = fake.fake_calls("cuInit") - before;
	infos = fake.fake_calls("cuMemGetInfo_v2") - infos;
	CHECK(ours("ta_get_stats") == NULL || (calls == 0 && infos < 10),
		"%lu calls of the runtime, %lu of cuMemGetInfo", calls, infos);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"errors", errors}, {"first", first}, {"figures", figures}, {"sites", sites}};
	RUN(tests);
}
