/* Four threads allocate, write and free blocks of all sizes while the main thread looks at
 * where the process's memory is, so many times: of all mappings with a memory policy, which are the
 * library's under a cap, it adds up the pages on the first nodes, as many as the second argument
 * says from the node that the first one names on. The third argument is the number of samples. It
 * prints the most and the last in bytes.
 *
 *   most BYTES last BYTES
 */
#include "guest.h"
#include <pthread.h>

#define THREADS 4
#define BLOCKS  96

static volatile int stop;

static void *churn(void *arg)
{
	static const long sizes[] = {40, 700, 9000, 70000, 300000, 1 << 20};
	char *blocks[BLOCKS] = {0};
	long size[BLOCKS] = {0};
	uint64_t r = (uint64_t)arg * 0x9e3779b97f4a7c15u + 1;
	for (long n = 1; !stop; n++) {
		if (n % 32 == 0)
			usleep(500); /* so that the main thread comes to look */
		r = r * 6364136223846793005u + 1442695040888963407u;
		int i = (r >> 33) % BLOCKS;
		if (blocks[i]) {
			MUST(blocks[i][0] == (char)i && blocks[i][size[i] - 1] == (char)i);
			free(blocks[i]);
		}
		size[i] = sizes[(r >> 50) % 6];
		MUST(blocks[i] = malloc(size[i]));
		memset(blocks[i], i, size[i]);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return NULL;
}

/* The bytes on the nodes from first on, by numa_maps. It allocates nothing. */
static long on_nodes(int first, int count)
{
	static char text[1 << 20];
	long n = 0, pages = 0;
	int fd = open("/proc/self/numa_maps", O_RDONLY);
	MUST(fd >= 0);
	for (long k; (k = read(fd, text + n, sizeof text - 1 - n)) > 0;)
		n += k;
	close(fd);
	MUST(n < (long)sizeof text - 1);
	text[n] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (strstr(line, " default"))
			continue;
		for (int node = first; node < first + count; node++) {
			char key[8];
			snprintf(key, sizeof key, " N%d=", node);
			char *at = strstr(line, key);
			if (at)
				pages += atol(at + strlen(key));
		}
	}
	return pages * PAGE;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	long most = 0, last = 0;
	MUST(argc == 4);
	for (long i = 0; i < THREADS; i++)
		MUST(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
	for (int k = 0; k < atoi(argv[3]); k++) {
		last = on_nodes(atoi(argv[1]), atoi(argv[2]));
		most = last > most ? last : most;
		usleep(2000);
	}
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("most %ld last %ld\n", most, last);
	return 0;
}
