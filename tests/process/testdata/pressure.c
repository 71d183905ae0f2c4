// A program that frees memory while little of its control group's limit is left.
//
//	pressure USAGE BYTES  fills the group until the file USAGE tells of BYTES
//	pressure              fills nothing
//
// It prints the KiB that were still resident after it had freed 8 MiB, the most of some rounds.
// With arguments it tries until that is less than 3 MiB, or for a time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 100000, LIVE = 1000, FREED = 84, ROUNDS = 5, TRIES = 600 };

static char *live[LIVE], *freed[FREED];

static long number(const char *path, const char *format)
{
	long n = 0;
	FILE *f = fopen(path, "r");
	if (!f || fscanf(f, format, &n) != 1)
		exit(2);
	fclose(f);
	return n;
}

static long resident(void) { return number("/proc/self/statm", "%*d %ld") * 4; }

static char *block(void)
{
	char *p = malloc(BLOCK);
	if (!p)
		exit(3);
	return memset(p, 1, BLOCK);
}

static void hold(void)
{
	for (int i = 0; i < FREED; i++)
		if (!freed[i])
			freed[i] = block();
}

static long kept(void)
{
	long most = 0;
	for (int round = 0; round < ROUNDS; round++) {
		hold();
		long before = resident();
		for (int i = 0; i < FREED; i++) {
			free(freed[i]);
			freed[i] = NULL;
		}
		long left = FREED * BLOCK / 1024 - (before - resident());
		most = left > most ? left : most;
	}
	return most;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < LIVE; i++)
		live[i] = block();
	long most = kept();
	if (argc == 3) {
		const size_t piece = 256 << 10;
		hold(); // what is free goes back while the group is filled, and would not fit again
		while (number(argv[1], "%ld") < atol(argv[2])) {
			void *p = mmap(0, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (p == MAP_FAILED)
				return 4;
			memset(p, 1, piece);
		}
		for (int i = 0; i < TRIES && (most = kept()) >= 3 << 10; i++)
			usleep(200000);
	}
	printf("%ld\n", most);
	return 0;
}
