/* What the library builds on, or has to live with, in the kernel. The nodes are 0, 1 and
 * 2; the first has less than GIB of memory free. */
#include "guest.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define GIB  (1024 * MIB)
#define HUGE (2 * MIB)

enum { PREFERRED = 1, BIND = 2, PREFERRED_MANY = 5 };

static long bind(void *p, long n, int mode, unsigned long nodes, int flags)
{
	return syscall(SYS_mbind, p, n, mode, &nodes, 65L, flags);
}

static char *map(long n)
{
	char *p = mmap(
		NULL, n + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(p != MAP_FAILED);
	return (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
}

static void lies(const void *p, long n, int node)
{
	long pages[NODES + 1] = {0};
	where(p, n, pages);
	if (pages[node] != n / PAGE)
		show("pages", pages);
	MUST(pages[node] == n / PAGE);
}

/* Small pages are moved exactly as told. */
static void small(void)
{
	char *p = map(HUGE);
	MUST(madvise(p, HUGE, MADV_NOHUGEPAGE) == 0);
	MUST(bind(p, HUGE, PREFERRED_MANY, 1, 0) == 0);
	fill(p, HUGE, 1);
	lies(p, HUGE, 0);
	MUST(bind(p + (64 << 10), 64 << 10, PREFERRED_MANY, 1 << 2, 2) == 0);
	lies(p, 64 << 10, 0);
	lies(p + (64 << 10), 64 << 10, 2);
	lies(p + (128 << 10), HUGE - (128 << 10), 0);
	MUST(holds(p, HUGE, 1));
	munmap(p, HUGE);
}

/* Who moves a part of a huge page moves all of it, whatever policy the rest has. */
static void huge(void)
{
	char *p = map(HUGE);
	MUST(madvise(p, HUGE, MADV_HUGEPAGE) == 0);
	MUST(bind(p, HUGE, PREFERRED_MANY, 1, 0) == 0);
	fill(p, HUGE, 1);
	lies(p, HUGE, 0);
	MUST(bind(p + (64 << 10), 64 << 10, PREFERRED_MANY, 1 << 2, 2) == 0);
	lies(p, HUGE, 2);
	MUST(holds(p, HUGE, 1));
	munmap(p, HUGE);
}

/* How gladly the kernel kills this process when memory is short: -1000 never, 1000 first. */
static void expendable(const char *score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);
	MUST(fd >= 0 && write(fd, score, strlen(score)) > 0);
	close(fd);
}

/* A node that is full: a preference is served from elsewhere, a bond ends the process. */
static void beyond(int mode, int killed)
{
	pid_t child = fork();
	MUST(child >= 0);
	if (child == 0) {
		expendable("1000");
		char *p = map(GIB);
		MUST(bind(p, GIB, mode, 1, 0) == 0);
		for (long i = 0; i < GIB / 2; i += PAGE)
			p[i] = 1;
		_exit(0);
	}
	int status;
	MUST(waitpid(child, &status, 0) == child);
	MUST(killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL :
				  WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A page that the kernel moves is on a node all the time, and one that was dropped on none. Of each
 * new mapping every second page is dropped, so that there is always something to compact. */
static void compacted(void)
{
	const long n = 32 * MIB;
	pid_t child = fork();
	MUST(child >= 0);
	if (child == 0)
		for (;;) {
			int fd = open("/proc/sys/vm/compact_memory", O_WRONLY);
			MUST(fd >= 0 && write(fd, "1", 1) == 1);
			close(fd);
		}
	for (int round = 0; round < 2; round++) {
		char *p = map(n);
		MUST(madvise(p, n, MADV_NOHUGEPAGE) == 0);
		fill(p, n, round);
		for (long i = 0; i < n; i += 2 * PAGE)
			MUST(madvise(p + i, PAGE, MADV_DONTNEED) == 0);
		for (int again = 0; again < 4; again++) {
			long pages[NODES + 1] = {0};
			where(p, n, pages);
			if (pages[NODES] != n / PAGE / 2)
				show("pages", pages);
			MUST(pages[NODES] == n / PAGE / 2);
		}
		munmap(p, n);
	}
	MUST(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

int main(void)
{
	expendable("-1000");
	char *p = map(HUGE);
	MUST(bind(p, HUGE, PREFERRED_MANY, 1 << 7, 0) != 0 && errno == EINVAL);
	MUST(bind(p, HUGE, PREFERRED, 1 << 7, 0) != 0 && errno == EINVAL);
	small();
	huge();
	compacted();
	beyond(PREFERRED_MANY, 0);
	beyond(BIND, 1);
	puts("as ever");
	return 0;
}
