// A program without CUDA whose plug-ins bring it, each for itself alone (RTLD_LOCAL).
#include "common.h"

static char **names; // of the plug-ins

struct plug {
	void *handle;
	int (*alloc)(void **, size_t), (*release)(void *), (*device)(int), (*last)(void);
	void (*functions)(int (**)(void **, size_t), int (**)(void *)), (*keep)(void);
};

static struct plug plug(const char *name)
{
	struct plug p = {.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
	CHECK(p.handle != NULL, "%s", dlerror());
#define IN_PLUG(field) *(void **)&p.field = dlsym(p.handle, "gpu_" #field)
	IN_PLUG(alloc);
	IN_PLUG(device);
	IN_PLUG(last);
	IN_PLUG(functions);
	IN_PLUG(keep);
	*(void **)&p.release = dlsym(p.handle, "gpu_free");
	return p;
}

static void try(struct plug *g, int (*alloc)(void **, size_t), int (*release)(void *))
{
	void *p = NULL, *q = NULL;
	for (int i = 0; i < 3; i++) {
		SHOW(alloc(&p, 1000));
		SHOW(alloc(&q, 3 * MIB));
		memset(p, 1, 1000);
		memset(q, 1, 3 * MIB);
		SHOW(release(p));
		SHOW(release(q));
	}
	SHOW(release(q));
	SHOW(g->last());
	SHOW(alloc(&p, 1ul << 50));
	SHOW(g->last());
	SHOW(g->last());
}

// By a jump from the plug-in, and by the addresses that it has.
static void calls(void)
{
	int (*alloc)(void **, size_t), (*release)(void *);
	struct plug g = plug(names[0]);
	try(&g, g.alloc, g.release);
	g.functions(&alloc, &release);
	try(&g, alloc, release);
}

static void *pointer_attribute(void)
{
	return dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuPointerGetAttribute");
}

static int device_of(void *p)
{
	int d = -1;
	((CUresult(*)(void *, int, CUdeviceptr))pointer_attribute())(&d, 9, (CUdeviceptr)p);
	return d;
}

// One plug-in after the other, which may find the place that was the one's before.
static void unload(void)
{
	for (int i = 0; i < 3; i++)
		for (char **n = names; *n != NULL; n++) {
			void *p = NULL;
			struct plug g = plug(*n);
			SHOW(g.alloc(&p, 5000)); // from where the plug-in before was called
			SHOW(g.release(p));
			if (i == 1)
				g.keep();
			SHOW(g.device(1));
			SHOW(g.alloc(&p, 5000));
			printf("device %d\n", device_of(p));
			SHOW(g.release(p));
			SHOW(g.device(0));
			SHOW(dlclose(g.handle));
			printf("still loaded: %d\n", dlopen(*n, RTLD_NOLOAD | RTLD_NOW) != NULL);
		}
}

static int stop;

static void *loader(void *name)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		dlclose(plug(name).handle);
	return NULL;
}

// Plug-ins come and go while the first one's functions are called back.
static void storm(void)
{
	int (*alloc)(void **, size_t), (*release)(void *);
	struct plug g = plug(names[0]);
	pthread_t threads[2];
	g.functions(&alloc, &release);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, loader, names[1 + i]) == 0);
	for (int i = 0; i < 3000; i++) {
		void *p;
		OK(alloc(&p, 5000));
		OK(release(p));
		OK(g.alloc(&p, 5000));
		OK(g.release(p));
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {{"calls", calls}, {"unload", unload}, {"storm", storm}};
	names = argv + 2;
	RUN(tests);
}
