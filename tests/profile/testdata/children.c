// children N BLOCKS forks N children one after another. Each allocates and frees so many blocks of
// 1,000 bytes from the function child.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char *volatile block;

__attribute__((noinline)) static void child(int blocks)
{
	for (int i = 0; i < blocks; i++) {
		block = malloc(1000);
		free(block);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	for (int n = atoi(argv[1]); n > 0; n--) {
		pid_t pid = fork();
		if (pid == 0) {
			child(atoi(argv[2]));
			return 0;
		}
		int status;
		if (waitpid(pid, &status, 0) != pid || status != 0)
			return 1;
	}
	child(10);
	return 0;
}
