/* Four threads of a child allocate, write and free blocks of all sizes while the parent looks at
 * where the child's memory is, so many times: of all mappings with a memory policy, which are the
 * library's under a cap, it adds up the pages on the first nodes, as many as the second argument
 * says from the node that the first one names on. The child stands still meanwhile: the kernel
 * reads the list a page at a time, and memory that is freed here and taken there in between would
 * be seen twice. The third argument is the number of samples. The parent prints the most and the
 * last in bytes.
 *
 *   most BYTES last BYTES
 */
#include "guest.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define THREADS 4
#define BLOCKS  96

static volatile sig_atomic_t over;

static void *churn(void *arg)
{
	static const long sizes[] = {40, 700, 9000, 70000, 300000, 1 << 20};
	char *blocks[BLOCKS] = {0};
	long size[BLOCKS] = {0};
	uint64_t r = (uint64_t)arg * 0x9e3779b97f4a7c15u + 1;
	for (long n = 1; !over; n++) {
		if (n % 32 == 0)
			usleep(500); /* so that the parent comes to look */
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

static void end(int signal)
{
	(void)signal;
	over = 1;
}

static int churn_until_told(void)
{
	pthread_t threads[THREADS];
	signal(SIGTERM, end);
	for (long i = 0; i < THREADS; i++)
		MUST(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* The bytes of a process on the nodes from first on, by numa_maps. */
static long on_nodes(pid_t pid, int first, int count)
{
	static char text[1 << 20];
	char name[64];
	long n = 0, pages = 0;
	snprintf(name, sizeof name, "/proc/%d/numa_maps", pid);
	int fd = open(name, O_RDONLY);
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
	long most = 0, last = 0;
	int status;
	if (argc == 1)
		return churn_until_told();
	MUST(argc == 4);
	pid_t child = fork();
	MUST(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(argv[0], argv[0], NULL);
		_exit(1);
	}
	for (int k = 0; k < atoi(argv[3]); k++) {
		MUST(kill(child, SIGSTOP) == 0);
		MUST(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
		last = on_nodes(child, atoi(argv[1]), atoi(argv[2]));
		most = last > most ? last : most;
		MUST(kill(child, SIGCONT) == 0);
		usleep(6000);
	}
	MUST(kill(child, SIGTERM) == 0);
	MUST(waitpid(child, &status, 0) == child && status == 0);
	printf("most %ld last %ld\n", most, last);
	fflush(stdout);
	syscall(SYS_exit_group, 0); /* _exit would write a report over the child's */
}
