// again HEADROOM: blocks of mappings of their own are freed and allocated again, in the same sizes,
// when the process has hardly a mapping left. It prints how many of 2000 calls of malloc failed,
// and by how many MiB the mappings have grown.
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "crowd.h"

enum { BLOCKS = 64, TIMES = 2000 };

static long mapped(void)
{
	char text[100] = "";
	int fd = open("/proc/self/statm", O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		abort();
	close(fd);
	return atol(text) / 256;
}

static size_t size(int i) { return 5000000 + (size_t)i * 70000; }

int main(int argc, char **argv)
{
	char *block[BLOCKS];
	int failed = 0;
	for (int i = 0; i < BLOCKS; i++)
		memset(block[i] = malloc(size(i)), 1, 5000000);
	char *three = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int headroom = argc > 1 ? atoi(argv[1]) : 0;
	fill_up(headroom);
	if (headroom == 0 && munmap(three + 4096, 4096) == 0) // it would take one more
		dprintf(2, "there is a mapping left\n"), abort();
	long before = mapped();
	for (int k = 0; k < TIMES; k++) {
		int i = k * 37 % BLOCKS;
		free(block[i]);
		block[i] = malloc(size(i));
		if (block[i] == NULL)
			failed++;
		else
			memset(block[i], 1, 5000);
	}
	dprintf(1, "%d %ld\n", failed, mapped() - before);
	return 0;
}
