// Wrong use of pointers, one kind a case. The pointer is printed first; whoever
// comes to the end of main was not caught.
#include "common.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

static void say(void *p) { dprintf(1, "%#lx\n", (long)p); }

static void *freed(size_t n)
{
	void *p = malloc(n), *keep = malloc(n);
	free(p), say(p);
	return keep == p ? NULL : hide(p);
}

static void twice(size_t n) { free(freed(n)); }
static void twice_0(void) { twice(0); }
static void twice_16(void) { twice(16); }
static void twice_1k(void) { twice(1000); }
static void twice_40k(void) { twice(40000); }
static void twice_1m(void) { twice(MIB); }
static void twice_huge(void) { twice(10 * MIB); }
static void twice_giant(void) { twice(200 * MIB); } // too large for any cache

static void aba(size_t n)
{
	void *a = malloc(n), *b = malloc(n);
	free(a), free(b), say(a), free(hide(a));
}
static void aba_small(void) { aba(40); }
static void aba_medium(void) { aba(9000); }
static void aba_huge(void) { aba(8 * MIB); }

static void *free_it(void *p) { return free(p), NULL; }

static void in_thread(void *p)
{
	pthread_t t;
	pthread_create(&t, NULL, free_it, p);
	pthread_join(t, NULL);
}

static void other_then_me(void)
{
	void *p = malloc(100);
	in_thread(p), say(p), free(hide(p));
}
static void me_then_other(void)
{
	in_thread(NULL); // a first thread takes blocks, which might lie where p was
	void *p = malloc(100);
	free(p), say(p), in_thread(hide(p));
}
static void others_both(void)
{
	void *p = malloc(100);
	in_thread(p), say(p), in_thread(hide(p));
}
// Deep in a page full of blocks that others freed, and taken back since.
static void remote_taken_back(void)
{
	static void *p[3000];
	for (int i = 0; i < 3000; i++)
		p[i] = malloc(48);
	for (int i = 100; i < 200; i++)
		in_thread(p[i]);
	for (int i = 0; i < 3; i++)
		malloc(48);
	say(p[150]), free(hide(p[150]));
}
// A thread with a heap of its own frees many of another's blocks: some are pushed on their page,
// then on a remote-free queue to their heap, until that is full.
static void *others[500];
static int again;
static void *free_others(void *p)
{
	free(malloc(48));
	for (int i = 0; i < 500; i++)
		free(others[i]);
	say(others[again]), free(hide(others[again]));
	return p;
}
static void worker(int i)
{
	for (int k = 0; k < 500; k++)
		others[k] = malloc(48);
	again = i;
	pthread_t t;
	pthread_create(&t, NULL, free_others, NULL);
	pthread_join(t, NULL);
}
static void worker_pushed(void) { worker(3); }
static void worker_ring(void) { worker(100); }
static void worker_beyond(void) { worker(450); }
// Blocks of pages that were full when the first of theirs came back.
static void full_pages(void (*again)(void *))
{
	static void *p[9000];
	for (int i = 0; i < 9000; i++)
		p[i] = malloc(48);
	for (int i = 100; i < 104; i++)
		free(p[i]), free(p[i + 3000]);
	say(p[101]), again(hide(p[101]));
}
static void twice_full(void) { full_pages(free); }
static void twice_full_other(void) { full_pages(in_thread); }
static void page_gone(void)
{
	static void *p[20000];
	for (int i = 0; i < 20000; i++)
		p[i] = malloc(1024);
	for (int i = 0; i < 20000; i++)
		free(p[i]);
	malloc_trim(0);
	say(p[7777]), free(hide(p[7777]));
}

static long data = 5;
static void stack_pointer(void)
{
	long here[4] = {0};
	say(&here), free(hide(&here));
}
static void data_pointer(void) { say(&data), free(hide(&data)); }
static void literal(void) { say("text"), free(hide("text")); }
static void code(void) { say(code), free(hide((void *)code)); }
static void mapped(void)
{
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say(p), free(hide(p));
}
static void unmapped(void) { say((void *)0x10), free(hide((void *)0x10)); }
static void kernel_half(void)
{
	say((void *)0xffff800000001000ul), free(hide((void *)0xffff800000001000ul));
}
static void non_canonical(void)
{
	say((void *)0x123456789abcdef0ul), free(hide((void *)0x123456789abcdef0ul));
}

static void inside(size_t n, size_t off)
{
	char *p = malloc(n);
	memset(p, 0, n);
	say(p + off), free(hide(p + off));
}
static void inside_small(void) { inside(100, 16); }
static void inside_empty(void)
{
	char *p = malloc(0);
	say(p + 1), free(hide(p + 1));
}
static void inside_odd(void) { inside(100, 1); }
static void inside_medium(void) { inside(20000, 4096); }
static void inside_large(void) { inside(MIB, 65536); }
static void inside_huge(void) { inside(10 * MIB, 16); }
static void inside_huge_far(void) { inside(10 * MIB, 5 * MIB); }
// In the page of 1 KiB blocks, but never handed out by malloc.
static void never_made(void)
{
	char *p = malloc(1000);
	say(p + 20 * 1024), free(hide(p + 20 * 1024));
}
static void before_block(void) { inside(100, -8); }

static void realloc_freed(void) { realloc(freed(100), 200); }
static void realloc_huge(void) { realloc(freed(10 * MIB), 20 * MIB); }
static void realloc_inside(void)
{
	char *p = malloc(MIB);
	say(p + 32), realloc(hide(p + 32), 5);
}
static void realloc_foreign(void) { say(&data), realloc(hide(&data), 100); }
static void realloc_zero_freed(void) { realloc(freed(100), 0); }
static void reallocarray_freed(void) { reallocarray(freed(100), 3, 50); }
static void usable_freed(void) { malloc_usable_size(freed(100)); }
static void usable_foreign(void) { say(&data), malloc_usable_size(hide(&data)); }

#define T(name) \
	{ \
#		name, name \
	}
static const struct test tests[] = {T(twice_0), T(twice_16), T(twice_1k), T(twice_40k), T(twice_1m),
	T(twice_huge), T(twice_giant), T(aba_small), T(aba_medium), T(aba_huge), T(other_then_me),
	T(me_then_other), T(others_both), T(remote_taken_back), T(worker_pushed), T(worker_ring),
	T(worker_beyond), T(twice_full), T(twice_full_other), T(page_gone), T(stack_pointer),
	T(data_pointer), T(literal), T(code), T(mapped), T(unmapped), T(kernel_half), T(non_canonical),
	T(inside_empty), T(inside_small), T(inside_odd), T(inside_medium), T(inside_large),
	T(inside_huge), T(inside_huge_far), T(never_made), T(before_block), T(realloc_freed),
	T(realloc_huge), T(realloc_inside), T(realloc_foreign), T(realloc_zero_freed),
	T(reallocarray_freed), T(usable_freed), T(usable_foreign)};

int main(int argc, char **argv) { RUN(tests); }
