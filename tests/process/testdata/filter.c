// A program under a filter that kills it for every system call but those of a short list.
//
//	filter HOW [more|report]
//
// HOW is the call that makes the filter: prctl, syscall, unseen if it is not libc's, past if
// neither is the one that forbids new privileges (the filter then knows what such filters must), or
// inherits where a program before this one has set no_new_privs. With "all" it is for all threads,
// and the program runs for a while. The short list is enough for one thread that allocates and
// exits. With "more" the filter also knows the calls with which libc makes threads and children,
// and the program has some. With "report" it knows those of a report as well (docs/limits.md).
#include "common.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static const int allocates[] = {SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_write,
	SYS_exit_group, SYS_clock_gettime, SYS_getpid, SYS_futex};

// Of libc: the stacks of threads are the program's own, which libc does not protect.
static const int threads[] = {SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq,
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_exit, SYS_wait4, SYS_gettid};

// Of a library that has not seen the filter.
static const int looks[] = {SYS_openat, SYS_read, SYS_pread64, SYS_close, SYS_mincore};

static const int reports[] = {
	SYS_arch_prctl, SYS_prlimit64, SYS_openat, SYS_fcntl, SYS_close, SYS_newfstatat, SYS_renameat};

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { MOST = 2 * 64 };
static struct sock_filter code[MOST];
static unsigned short length;

static void add(int what, unsigned k, int yes, int no)
{
	code[length++] = (struct sock_filter){.code = what, .k = k, .jt = yes, .jf = no};
}

static void allow(const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		add(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	}
}

// A system call that is not libc's.
static long own(long number, long a, long b, const void *c)
{
	long e;
	register long d __asm__("r10") = 0;
	register long f __asm__("r8") = 0;
	__asm__ volatile("syscall"
					 : "=a"(e)
					 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(f)
					 : "rcx", "r11", "memory");
	return e;
}

static void filter(const char *how, int more, int report)
{
	int past = strcmp(how, "past") == 0;
	add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	allow(allocates, COUNT(allocates));
	if (more)
		allow(threads, COUNT(threads));
	if (report)
		allow(reports, COUNT(reports));
	if (past)
		allow(looks, COUNT(looks));
	add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	struct sock_fprog all = {length, code};
	if (past)
		CHECK(own(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, NULL) == 0);
	else if (strcmp(how, "inherits") != 0)
		CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (past || strcmp(how, "unseen") == 0)
		CHECK(own(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0);
	else if (strcmp(how, "prctl") == 0)
		CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0, "%m");
	else
		CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				  strcmp(how, "all") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0, &all) == 0,
			"%m");
}

static unsigned state = 1;

static unsigned any(unsigned n)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

// Blocks of all sizes, a MiB of each or a single one at a time, by every function in turn.
static void sizes(void)
{
	enum { MOST = 256 };
	static char *p[MOST];
	unsigned turn = 0; // goes on from size to size, so that single blocks too are of each kind
	for (size_t n = 1; n <= 80 * MIB; n += n < 8 * MIB ? n / 3 + 1 : n) {
		size_t count = MIB / n + 1 < MOST ? MIB / n + 1 : MOST;
		for (size_t i = 0; i < count; i++, turn++) {
			p[i] = turn % 4 == 0 ? calloc(1, n) :
				turn % 4 == 1    ? memalign(64 << turn % 10, n) :
								   malloc(n);
			CHECK(p[i] != NULL, "%zu bytes", n);
			p[i][0] = p[i][n - 1] = 1;
		}
		for (size_t i = 0; i < count; i++) {
			size_t to = n * (1 + (turn + i) % 3) / 2 + 1;
			p[i] = realloc(p[i], to);
			CHECK(p[i] != NULL && p[i][0] == 1, "%zu bytes", to);
		}
		for (size_t i = 0; i < count; i++)
			free(p[i]);
	}
	CHECK(malloc((size_t)hide((void *)(1ul << 46))) == NULL && errno == ENOMEM);
}

// A large block of which little was touched, given out again as zeros.
static void sparse(void)
{
	char *p = malloc(6 * MIB);
	CHECK(p != NULL);
	p[0] = 1;
	free(p);
	p = calloc(1, 6 * MIB);
	CHECK(p != NULL && p[0] == 0);
	free(p);
}

// A heap that grows to 60 MiB, with all of its pages in use or few, and a block that grows with it.
// From 32 MiB on the heap looks at its pages and at the machine.
static void growth(int all)
{
	enum { MOST = 1500 };
	static char *p[MOST];
	char *grown = NULL;
	for (int i = 0; i < MOST; i++) {
		size_t n = 64 + any(any(8) == 0 ? 400000 : 20000);
		p[i] = malloc(n);
		CHECK(p[i] != NULL);
		p[i][0] = p[i][n - 1] = 1;
		if (all)
			memset(p[i], 1, n);
		if (i % 300 == 0)
			CHECK((grown = realloc(grown, (size_t)(i + 1) * 9000)) != NULL);
	}
	sparse();
	for (int i = 0; i < MOST; i++)
		free(p[i * 7 % MOST]);
	free(grown);
	malloc_trim(0);
}

static void *work(void *unused)
{
	(void)unused;
	void *p[100] = {0};
	for (int i = 0; i < 2000; i++) {
		int k = i % 100;
		free(p[k]);
		p[k] = malloc(1 + i * 7919 % (i % 50 == 0 ? 3 * MIB : 8000));
	}
	for (int k = 0; k < 100; k++)
		free(p[k]);
	return NULL;
}

static void with_threads(void)
{
	enum { THREADS = 8, AT_ONCE = 4, STACK = 256 << 10 };
	for (int round = 0; round < THREADS / AT_ONCE; round++) {
		pthread_t t[AT_ONCE];
		for (int i = 0; i < AT_ONCE; i++) {
			pthread_attr_t attr;
			void *stack = mmap(
				NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			CHECK(stack != MAP_FAILED && pthread_attr_init(&attr) == 0);
			CHECK(pthread_attr_setstack(&attr, stack, STACK) == 0);
			CHECK(pthread_create(&t[i], &attr, work, NULL) == 0);
		}
		work(NULL);
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(t[i], NULL);
	}
}

static void with_children(void)
{
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();
		if (child == 0) {
			growth(0);
			i == 0 ? exit(0) : _exit(0);
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child && status == 0, "status %#x", status);
	}
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2);
	int report = argc > 2 && strcmp(argv[2], "report") == 0, more = argc > 2;
	filter(argv[1], more, report);
	time_t start = time(NULL);
	growth(1);
	sizes();
	while (strcmp(argv[1], "all") == 0 && time(NULL) < start + 2)
		growth(1);
	if (more) {
		with_threads();
		with_children();
		growth(0);
	}
	return 0;
}
