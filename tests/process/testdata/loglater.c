// A log of warnings begins when there is one. The first argument says what the program does before
// its tier has no room for a block, the second is the log.
#include "common.h"
#include "begun.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int log_file;

static off_t size(void)
{
	struct stat st;
	return fstat(log_file, &st) == 0 ? st.st_size : 0;
}

static void refused(void) { CHECK(hide(malloc(64 << 20)) == NULL); }

// Until the log has grown, while the program runs.
static void told(void)
{
	off_t before = size();
	refused();
	for (double until = now() + 20; size() == before; usleep(1000))
		CHECK(now() < until);
}

static void fills(void)
{
	for (size_t n = 1 << 20; n >= 16; n /= 2)
		while (hide(malloc(n)) != NULL)
			;
}

static void forks(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		int late = now() - begun >= 0.2; // it may have no log
		if (late)
			_exit(3);
		told();
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && (status == 0 || status == 3 << 8));
	printf("child %d\n", status ? 0 : pid);
}

static void moves(void) { CHECK(chdir("/") == 0 && setuid(54321) == 0); }

static void closes(void) { CHECK(dup2(open("own", O_CREAT | O_RDWR | O_TRUNC, 0600), 2) == 2); }

static void alone(void) { CHECK(unshare(CLONE_FILES | CLONE_SIGHAND | CLONE_VM) == 0); }

int main(int argc, char **argv)
{
	const char *how = argv[1];
	log_file = open(argv[2], O_RDONLY);
	CHECK(argc == 3 && threads() <= 2 && size() == 0);
	if (strcmp(how, "lives") == 0)
		told();
	else if (strcmp(how, "ends") == 0)
		refused();
	else if (strcmp(how, "fills") == 0)
		fills(), told();
	else if (strcmp(how, "moves") == 0)
		moves(), told();
	else if (strcmp(how, "forks") == 0)
		forks(), refused();
	else if (strcmp(how, "closes") == 0)
		closes(), refused();
	else if (strcmp(how, "alone") == 0)
		alone(), refused();
	else
		CHECK(strcmp(how, "nothing") == 0 && threads() <= 2);
	return 0;
}
