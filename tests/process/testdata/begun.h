// The threads of a process and how long it has run.
#ifndef BEGUN_H
#define BEGUN_H
#include <dirent.h>
#include <time.h>

static int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = -2; // . and ..
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double begun; // before the library's constructor

static void begin(void) { begun = now(); }

static void (*const first_of_all)(void) __attribute__((section(".preinit_array"), used)) = begin;

#endif
