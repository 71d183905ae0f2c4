/* A program that knows nothing of tiers. Its arguments are groups SIZExCOUNT of blocks. It
 * allocates them all, in two threads that take turns, fills them, and frees and allocates
 * every third one again. Then it prints where the blocks of each group lie,
 *
 *   SIZE PAGES-ON-NODE-0 PAGES-ON-NODE-1 PAGES-ON-NODE-2 ABSENT
 *
 * leaves their addresses in "blocks" and copies of its maps, and checks all contents. A
 * block that cannot be had ends it with status 12. With "-control" before the groups it first
 * waits for the threads of the control plane, with "-control=apart" for memory on a node of its
 * own. */
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

// The pages of no file on the second node.
static long pages_apart(void)
{
	char line[4096];
	long pages = 0;
	FILE *numa_maps = fopen("/proc/self/numa_maps", "r");
	MUST(numa_maps);
	while (fgets(line, sizeof line, numa_maps)) {
		const char *there = strstr(line, " N1=");
		if (there && !strstr(line, " file="))
			pages += atol(there + 4);
	}
	fclose(numa_maps);
	return pages;
}

// The control plane has at most two threads with this one before its runtime starts, which it does
// once the heap has grown. Apart, its memory is on the second node, where 256 KiB come soon.
static void await_control(int apart)
{
	void *grown = malloc(3 << 20);
	MUST(grown);
	for (int i = 0; threads() <= 2; i++) {
		MUST(i < 3000);
		usleep(10000);
	}
	free(grown);
	for (int i = 0; apart && pages_apart() < 64; i++) {
		MUST(i < 3000);
		usleep(10000);
	}
	usleep(300000);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strncmp(argv[1], "-control", 8) == 0) {
		await_control(strcmp(argv[1], "-control=apart") == 0);
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
