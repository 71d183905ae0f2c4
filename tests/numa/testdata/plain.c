/* A program that knows nothing of tiers. Its arguments are groups SIZExCOUNT of blocks. It
 * allocates them all, in two threads that take turns, fills them, and frees and allocates
 * every third one again. Then it prints where the blocks of each group lie,
 *
 *   SIZE PAGES-ON-NODE-0 PAGES-ON-NODE-1 PAGES-ON-NODE-2 ABSENT
 *
 * leaves their addresses in "blocks" and copies of its maps, and checks all contents. A
 * block that cannot be had ends it with status 12. With "-control" before the groups it first
 * waits for the threads of the control plane. */
#include "guest.h"
#include <dirent.h>
#include <pthread.h>

#define GROUPS 16
#define BLOCKS 20000

struct block {
	void *at;
	long size;
};
static struct block blocks[BLOCKS];
static long size[GROUPS], count[GROUPS];
static int groups, total;

static void *allocate(void *half)
{
	for (long i = (long)half; i < total; i += 2) {
		blocks[i].at = malloc(blocks[i].size);
		if (!blocks[i].at) {
			printf("no block of %ld bytes: errno %d\n", blocks[i].size, errno);
			fflush(stdout);
			_exit(errno == ENOMEM ? 12 : 1);
		}
		fill(blocks[i].at, blocks[i].size, i);
		if (i % 3 == 0) {
			free(blocks[i].at);
			blocks[i].at = malloc(blocks[i].size);
			MUST(blocks[i].at);
			fill(blocks[i].at, blocks[i].size, i);
		}
	}
	return NULL;
}

static int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = -2; // . and ..
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

// The control plane has at most two threads with this one before its runtime starts, which it does
// once the heap has grown.
static void await_control(void)
{
	void *grown = malloc(3 << 20);
	MUST(grown);
	for (int i = 0; threads() <= 2; i++) {
		MUST(i < 3000);
		usleep(10000);
	}
	free(grown);
	usleep(300000);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "-control") == 0) {
		await_control();
		argc--, argv++;
	}
	for (; groups < argc - 1 && groups < GROUPS; groups++) {
		MUST(sscanf(argv[groups + 1], "%ldx%ld", &size[groups], &count[groups]) == 2);
		for (long k = 0; k < count[groups]; k++) {
			MUST(total < BLOCKS);
			blocks[total++].size = size[groups];
		}
	}
	pthread_t other;
	MUST(pthread_create(&other, NULL, allocate, (void *)1) == 0);
	allocate((void *)0);
	pthread_join(other, NULL);

	FILE *list = fopen("blocks", "w");
	MUST(list);
	int first = 0;
	for (int g = 0; g < groups; first += count[g++]) {
		long pages[NODES + 1] = {0};
		char name[32];
		for (int i = first; i < first + count[g]; i++) {
			where(blocks[i].at, blocks[i].size, pages);
			fprintf(list, "%lx %ld\n", (long)blocks[i].at, blocks[i].size);
		}
		snprintf(name, sizeof name, "%ld", size[g]);
		show(name, pages);
	}
	fclose(list);
	maps();
	copy("/proc/self/smaps", "smaps");
	for (int i = 0; i < total; i++) {
		MUST(holds(blocks[i].at, blocks[i].size, i));
		free(blocks[i].at);
	}
	return 0;
}
