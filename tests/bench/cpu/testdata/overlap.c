// An allocator that is wrong: every other call gives out one of the latest blocks again,
// whoever has it. Nothing is ever freed.
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define ROOM   (8ul << 30)
#define LATEST 8

struct head {
	size_t n, unused;
};

static _Atomic(char *) latest[LATEST];
static _Atomic(uintptr_t) top;
static atomic_uint calls;

static char *fresh(size_t n)
{
	static _Atomic(uintptr_t) start;
	uintptr_t base = atomic_load(&start), none = 0;
	if (base == 0) {
		void *p = mmap(
			NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
		if (atomic_compare_exchange_strong(&start, &none, (uintptr_t)p))
			none = (uintptr_t)p;
		base = none;
	}
	size_t whole = (n + sizeof(struct head) + 15) & ~15ul;
	uintptr_t at = atomic_fetch_add(&top, whole);
	if (at + whole > ROOM)
		return NULL;
	struct head *h = (struct head *)(base + at);
	h->n = n;
	return (char *)(h + 1);
}

void *malloc(size_t n)
{
	unsigned call = atomic_fetch_add(&calls, 1);
	if (call % 2 == 1)
		for (unsigned i = 0; i < LATEST; i++) {
			char *p = atomic_load(&latest[(call / 2 + i) % LATEST]);
			if (p != NULL && ((struct head *)p)[-1].n >= n)
				return p;
		}
	char *p = fresh(n);
	atomic_store(&latest[call / 2 % LATEST], p);
	return p;
}

void *calloc(size_t count, size_t n)
{
	char *p = count == 1 ? malloc(n) : fresh(count * n); // the C library's own arrays stay whole
	return p == NULL ? NULL : memset(p, 0, count * n);
}

void *realloc(void *old, size_t n)
{
	char *p = malloc(n);
	if (p != NULL && old != NULL) {
		size_t had = ((struct head *)old)[-1].n;
		memmove(p, old, had < n ? had : n);
	}
	return p;
}

void free(void *p) { (void)p; }
