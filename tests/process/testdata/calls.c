// Makes known calls, argv[2] times over: the Go side compares two runs.
#include "common.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

static int times;
#define REPEAT            for (int i_ = 0; i_ < times; i_++)
#define SINK(p)           ((void)hide(p))
#define F(ret, name, ...) ((ret(*)(__VA_ARGS__))find(name))

static void *find(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);
	CHECK(f != NULL, "%s", name);
	return f;
}

static void basic(void)
{
	REPEAT
	{
		void *p = malloc(40), *q = malloc(5000), *r = malloc(0);
		SINK(malloc(100)); // stays
		free(q), free(p), free(r), free(NULL);
		SINK(malloc(SIZE_MAX - 9));
		SINK(malloc((size_t)1 << 62));
	}
}

static void zeroed(void)
{
	REPEAT
	{
		free(calloc(3, 50)), SINK(calloc(1, 700)), free(calloc(0, 0));
		SINK(calloc(SIZE_MAX / 2, 3)), SINK(calloc(1, SIZE_MAX - 9));
	}
}

static void resized(void)
{
	REPEAT
	{
		char *p = realloc(NULL, 200); // 208
		p = realloc(p, 5000);         // moves
		p = realloc(p, 5001);         // has room
		SINK(realloc(p, SIZE_MAX - 9));
		p = reallocarray(p, 3, 10000); // moves
		SINK(reallocarray(p, SIZE_MAX, 2));
		p = realloc(p, 50); // moves
		SINK(realloc(p, 0)), SINK(realloc(NULL, SIZE_MAX - 9)), SINK(realloc(NULL, 96));
	}
}

// Through the sizes where the kernel moves pages in place of a copy.
static void resized_huge(void)
{
	REPEAT
	{
		char *p = malloc(300000);
		p = realloc(p, 700000), p = realloc(p, 3 * MIB), p = realloc(p, 6 * MIB);
		p = realloc(p, 11 * MIB), p = realloc(p, 5 * MIB), p = realloc(p, MIB);
		free(p);
	}
}

static void aligned(void)
{
	REPEAT
	{
		void *p = NULL, *q = NULL;
		free(memalign(64, 100)), free(aligned_alloc(256, 256)), free(valloc(10)),
			free(pvalloc(5000));
		free(memalign(1 << 20, 10)); // has a mapping of its own
		CHECK(posix_memalign(&p, 64, 10) == 0 && posix_memalign(&q, 4096, 8192) == 0);
		free(p), free(q);
		SINK(memalign(64, SIZE_MAX - 99)), SINK(aligned_alloc(64, SIZE_MAX - 99)),
			SINK(valloc(SIZE_MAX - 99));
		SINK(pvalloc(SIZE_MAX - 99));
		CHECK(posix_memalign(&p, 64, SIZE_MAX - 99) == ENOMEM);
	}
}

static void aligned_invalid(void)
{
	void *p;
	REPEAT CHECK(posix_memalign(&p, 3, 10) == EINVAL);
	REPEAT SINK(memalign(SIZE_MAX, 10));
}

static void others(void)
{
	REPEAT
	{
		void *p = malloc(64), *q = malloc(64);
		malloc_usable_size(p), malloc_usable_size(NULL);
		F(void, "free_sized", void *, size_t)(p, 64);
		F(void, "free_aligned_sized", void *, size_t, size_t)(q, 16, 64);
		F(void, "free_sized", void *, size_t)(NULL, 0);
		malloc_trim(0);
	}
}

static void cxx(void)
{
	REPEAT
	{
		void *p = F(void *, "_Znwm", size_t)(70),
			 *q = F(void *, "_ZnamSt11align_val_t", size_t, size_t)(70, 128);
		F(void, "_ZdlPvm", void *, size_t)
		(p, 70), F(void, "_ZdaPvSt11align_val_t", void *, size_t)(q, 128);
		SINK(F(void *, "_ZnwmRKSt9nothrow_t", size_t, void *)(20000, &p));
		SINK(F(void *, "_ZnamRKSt9nothrow_t", size_t, void *)(SIZE_MAX - 9, &p));
	}
}

static void null_deletes(void) { REPEAT F(void, "_ZdlPv", void *)(NULL); }

static void own(void)
{
	REPEAT
	{
		void *p = F(void *, "ta_alloc", size_t, int)(30, 1);
		F(void, "ta_free", void *)(p), SINK(F(void *, "ta_alloc", size_t, int)(SIZE_MAX - 9, 1));
		SINK(F(void *, "ta_alloc", size_t, int)(5 * MIB - 4096, 2));
	}
}

static void own_odd(void)
{
	REPEAT F(void, "ta_free", void *)(NULL), SINK(F(void *, "ta_alloc", size_t, int)(8, 77));
}

static void **shared;

static void *makes(void *v)
{
	REPEAT shared[i_] = malloc(350), SINK(calloc(1, 350)), free(NULL);
	return v;
}

static void *drops(void *v)
{
	REPEAT free(shared[i_]), shared[i_] = malloc(1500);
	return v;
}

// One thread makes, another frees and makes, the main thread frees half.
static void threads(void)
{
	shared = calloc(100000, sizeof *shared);
	pthread_t t, u;
	pthread_create(&t, NULL, makes, NULL);
	pthread_join(t, NULL);
	pthread_create(&u, NULL, makes, NULL); // has the dead one's heap
	pthread_join(u, NULL);
	pthread_create(&t, NULL, drops, NULL);
	pthread_join(t, NULL);
	for (int i = 0; i < times; i += 2)
		free(shared[i]);
}

static pthread_barrier_t barrier;

static void *keeps(void *v)
{
	shared[(long)v] = malloc(600);
	pthread_barrier_wait(&barrier); // all have a heap now
	free(malloc(48));
	return v;
}

static void together(void)
{
	static pthread_t t[64];
	shared = calloc(64, sizeof *shared);
	pthread_barrier_init(&barrier, NULL, (unsigned)times);
	for (long i = 0; i < times; i++)
		CHECK(pthread_create(&t[i], NULL, keeps, (void *)i) == 0);
	for (int i = 0; i < times; i++)
		pthread_join(t[i], NULL), free(shared[i]);
}

static const struct test tests[] = {{"basic", basic}, {"zeroed", zeroed}, {"resized", resized},
	{"resized huge", resized_huge}, {"aligned", aligned}, {"aligned invalid", aligned_invalid},
	{"others", others}, {"cxx", cxx}, {"null deletes", null_deletes}, {"own", own},
	{"own odd", own_odd}, {"threads", threads}, {"together", together}};

int main(int argc, char **argv)
{
	times = argc > 2 ? atoi(argv[2]) : 0;
	if (argc > 3) { // in a forked child, after as much before it
		hide(malloc(100)), basic();
		pid_t pid = fork();
		int status = 0;
		if (pid != 0) {
			waitpid(pid, &status, 0);
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
		}
	}
	RUN(tests);
}
