// launch KIND PROGRAM ARG...: runs the program with LD_PRELOAD=$LIB and with
// standard error an odd pipe, or a file that may not grow, and ends as it ended.
#include "common.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void *stuffing;

static void stuff(int fd)
{
	stuffing = calloc(1, 4096);
	while (write(fd, stuffing, 4096) > 0)
		;
	CHECK(errno == EAGAIN);
}

int main(int argc, char **argv)
{
	int p[2], status;
	CHECK(argc > 2 && pipe(p) == 0);
	if (strcmp(argv[1], "broken") == 0)
		close(p[0]);
	else
		fcntl(p[1], F_SETFL, O_NONBLOCK);
	if (strcmp(argv[1], "full") == 0)
		stuff(p[1]);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		if (strcmp(argv[1], "limit") == 0) {
			signal(SIGXFSZ, SIG_DFL);
			dup2(fileno(tmpfile()), p[1]);
			CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0}) == 0);
		}
		setenv("LD_PRELOAD", getenv("LIB"), 1);
		dup2(p[1], 2);
		if (p[1] != 2)
			close(p[1]);
		if (strcmp(argv[1], "broken") != 0)
			close(p[0]);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(strcmp(argv[1], "broken") == 0 || fcntl(p[1], F_GETFL) & O_NONBLOCK,
		"the pipe has become a blocking one");
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
