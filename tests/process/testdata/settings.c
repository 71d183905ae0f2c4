// What settings do: when memory goes back, and a program with a malloc of its own.
#include "common.h"
#include <malloc.h>
#include <time.h>

static void *block[64];

static void touch(size_t n, int many)
{
	for (int i = 0; i < many; i++)
		memset(block[i] = malloc(n), 1, n);
}

static void drop(int many)
{
	for (int i = 0; i < many; i++)
		free(block[i]);
}

// Enough blocks of one class for a few pages.
static void little_work(void)
{
	void *p[64];
	for (int i = 0; i < 64; i++)
		p[i] = malloc(100000);
	for (int i = 0; i < 64; i++)
		free(p[i]);
}

static long ms_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Frees many blocks of n bytes and prints how many KiB less are resident at once, how many ms that
// took, and how many KiB less after two pauses with a little work of another class: the first may
// only find what the heap had kept for itself.
static void purge(size_t n, int many)
{
	touch(n, many);
	long full = rss(), begun = ms_now();
	drop(many);
	long at_once = full - rss(), took = ms_now() - begun;
	for (int pause = 0; pause < 2; pause++) {
		usleep(120000);
		little_work();
	}
	printf("%ld %ld %ld\n", at_once / 1024, took, (full - rss()) / 1024);
}

static void huge(void) { purge(24 * MIB, 1); }
static void spans(void) { purge(MIB / 2, 24); }

// The same with one block of each class from 288 KiB to 4 MiB, 48 MiB in all.
static void classes(void)
{
	int many = 0;
	for (size_t step = 32 << 10; step < 512 << 10; step *= 2)
		for (int i = 9; i <= 16; i++, many++)
			memset(block[many] = malloc(step * i), 1, step * i);
	long full = rss();
	drop(many);
	for (int pause = 0; pause < 4; pause++) {
		usleep(120000);
		little_work();
	}
	printf("%ld\n", (full - rss()) / 1024);
}

// Leaves a block of 2000 bytes and what the environment says in place.
static void work(void)
{
	for (int i = 0; i < 100; i++)
		free(malloc(i * 1000));
	hide(malloc(2000));
	puts("done");
}

static const struct test tests[] = {
	{"huge", huge}, {"spans", spans}, {"classes", classes}, {"work", work}};

int main(int argc, char **argv) { RUN(tests); }
