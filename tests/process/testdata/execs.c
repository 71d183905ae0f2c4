// A program whose calls of execve all fail, late: the file's interpreter is the file itself.
#include "common.h"
#include <fcntl.h>

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	CHECK(fd >= 0 && dprintf(fd, "#!%s\n", argv[1]) > 0 && close(fd) == 0);
	for (int i = 0; i < 500; i++)
		CHECK(execve(argv[1], argv, NULL) == -1 && errno == ELOOP);
	puts("end");
	return 0;
}
