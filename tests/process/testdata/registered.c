// Registers all memory that it uses, as a library for a network adapter does, and overwrites the
// beginning of libc's munmap, mremap and madvise to learn what is given back. Checks that no
// registered memory page lost its contents unannounced.
#include "common.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { PAGE = 4096, STAMPS = 4, SLOTS = 1 << 20 };

// Registered memory pages by hash: their addresses, with bit 0 set while they are registered.
static uintptr_t *slots;
static long announced;
static int greedy; // whether the functions allocate

static uintptr_t *slot(uintptr_t page, int make)
{
	for (size_t i = page / PAGE * 0x9e3779b97f4a7c15u % SLOTS;; i = (i + 1) % SLOTS) {
		uintptr_t at = __atomic_load_n(&slots[i], __ATOMIC_RELAXED);
		if (at == 0 && !make)
			return NULL;
		if (at == 0)
			at = __sync_val_compare_and_swap(&slots[i], 0, page);
		if (at == 0 || (at & ~(uintptr_t)1) == page)
			return &slots[i];
	}
}

static uintptr_t stamp(uintptr_t page) { return page ^ 0x5a5a000000000001u; }

// Where a memory page has the stamp: the heap may use a few words of a free page.
static uintptr_t stamped(uintptr_t page, int i)
{
	return page + PAGE / STAMPS * i + PAGE / STAMPS / 2;
}

// Stamps the memory pages that are the block's alone and registers them. The first and the last are
// registered no more.
static void enroll(char *p, size_t n)
{
	uintptr_t at = (uintptr_t)p, end = at + n;
	for (uintptr_t a = at & -(uintptr_t)PAGE; a < end; a += PAGE) {
		if (a < at || a + PAGE > end) {
			__atomic_and_fetch(slot(a, 1), ~(uintptr_t)1, __ATOMIC_RELAXED);
			continue;
		}
		for (int i = 0; i < STAMPS; i++)
			*(uintptr_t *)stamped(a, i) = stamp(a);
		__atomic_or_fetch(slot(a, 1), 1, __ATOMIC_RELAXED);
	}
}

static void gone(void *p, size_t n)
{
	for (uintptr_t a = (uintptr_t)p & -(uintptr_t)PAGE; a < (uintptr_t)p + n; a += PAGE) {
		uintptr_t *s = slot(a, 0);
		if (s != NULL)
			__atomic_and_fetch(s, ~(uintptr_t)1, __ATOMIC_RELAXED);
	}
	__atomic_add_fetch(&announced, 1, __ATOMIC_RELAXED);
	if (greedy)
		free(hide(malloc(100)));
}

static int new_munmap(void *p, size_t n)
{
	gone(p, n);
	return syscall(SYS_munmap, p, n);
}

static int new_madvise(void *p, size_t n, int advice)
{
	if (advice == MADV_DONTNEED)
		gone(p, n);
	return syscall(SYS_madvise, p, n, advice);
}

// Like the one of UCX it knows no new address.
static void *new_mremap(void *p, size_t n, size_t to, int flags)
{
	gone(p, n);
	return (void *)syscall(SYS_mremap, p, n, to, flags);
}

static void redirect(const char *name, void *to)
{
	unsigned char jump[13] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
	unsigned char *f = dlsym(RTLD_DEFAULT, name);
	uintptr_t page = (uintptr_t)f & -(uintptr_t)PAGE;
	memcpy(jump + 2, &to, sizeof to);
	CHECK(f != NULL && mprotect((void *)page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
	memcpy(f, jump, sizeof jump);
	CHECK(mprotect((void *)page, 2 * PAGE, PROT_READ | PROT_EXEC) == 0);
}

// Whether no stamp is left in a memory page.
static int blank(uintptr_t page)
{
	for (int i = 0; i < STAMPS; i++) {
		uintptr_t word = 0;
		struct iovec to = {&word, sizeof word}, from = {(void *)stamped(page, i), sizeof word};
		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof word && word == stamp(page))
			return 0;
	}
	return 1;
}

static long lost(void)
{
	long n = 0;
	for (size_t i = 0; i < SLOTS; i++)
		n += slots[i] & 1 && blank(slots[i] - 1);
	return n;
}

static size_t random_size(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (size_t)8192 << (*seed >> 60) % 11 | (*seed >> 33) % 8192; // up to 8 MiB
}

static void *use(void *arg)
{
	enum { BLOCKS = 40 };
	uint64_t seed = (uintptr_t)arg;
	char *p[BLOCKS] = {NULL};
	size_t n[BLOCKS];
	for (int i = 0; i < 600; i++) {
		int k = (int)((seed >> 40) % BLOCKS), grows = p[k] != NULL && (seed >> 50) % 3 == 0;
		if (!grows) {
			free(p[k]);
			p[k] = NULL;
		}
		n[k] = random_size(&seed);
		CHECK((p[k] = realloc(p[k], n[k])) != NULL);
		enroll(p[k], n[k]);
		if (i % 150 == 149) {
			for (int j = 0; j < BLOCKS; j++) {
				free(p[j]);
				p[j] = NULL;
			}
			usleep(150000); // longer than the delay of purging
		}
	}
	for (int j = 0; j < BLOCKS; j++)
		free(p[j]);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[1]);
	greedy = argc > 2;
	slots = mmap(
		NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	redirect("munmap", new_munmap);
	redirect("madvise", new_madvise);
	redirect("mremap", new_mremap);
	pthread_t t[8];
	for (int i = 0; i < threads; i++)
		CHECK(pthread_create(&t[i], NULL, use, (void *)(uintptr_t)(i + 1)) == 0);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	malloc_trim(0);
	printf("%ld lost, %ld announced\n", lost(), announced);
	return 0;
}
