// swap PAGE DIR LINK keeps the page mapped, and changes for ever which of a folder and a
// symbolic link has which of the two names. The folder always has the page as "victim".
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char dir[4096];
	int fd = open(argv[1], O_RDWR), folder = open(argv[2], O_PATH | O_DIRECTORY);
	struct stat st;

	if (argc != 4 || fd < 0 || folder < 0 || fstat(fd, &st))
		return 1;
	if (mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		return 2;
	linkat(AT_FDCWD, argv[1], folder, "victim", 0);
	snprintf(dir, sizeof dir, "%s", argv[2]);
	puts("ready");
	fflush(stdout);
	for (;;) {
		renameat2(AT_FDCWD, dir, AT_FDCWD, argv[3], RENAME_EXCHANGE);
		linkat(AT_FDCWD, argv[1], folder, "victim", 0);
	}
}
