// What is worth a line in the log: a driver that cannot be used.
#include "common.h"

static void *(*ta_malloc)(ssize_t, int, void *);

static void ask(void)
{
	ta_malloc = (void *(*)(ssize_t, int, void *))ours("ta_cuda_malloc");
	for (int i = 0; i < 3; i++) {
		void *p = ta_malloc(100, 0, NULL);
		printf("%p %d\n", p, errno == ENODEV);
	}
}

static void missing(void) { ask(); }

static void *driver(const char *name)
{
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
	CHECK(lib != NULL, "%s", dlerror());
	return dlsym(lib, name);
}

// With a driver that has nothing but cuInit.
static void old(void)
{
	CUresult (*init)(unsigned) = (CUresult(*)(unsigned))driver("cuInit");
	printf("%d\n", init(0));
	ask();
}

static void fails(void)
{
	CUresult (*init)(unsigned) = (CUresult(*)(unsigned))driver("cuInit");
	((void (*)(const char *, int, CUresult))driver("fake_fail"))("cuInit", 1, CUDA_ERROR_NO_DEVICE);
	printf("%d\n", init(0));
}

// A limit that refuses.
static void refused(void)
{
	CUdeviceptr p;
	load();
	SHOW(cu.cuMemAlloc_v2(&p, 100 * MIB));
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{"missing", missing}, {"old", old}, {"fails", fails}, {"refused", refused}};
	RUN(tests);
}
