// unmapped allocates on the stack of a coroutine while the frame pointer, which is not in use as
// one, leads to memory between that stack and the thread's. At first the memory is readable, and
// then it is not. The argument says in which thread.
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PART = 192 << 10 }; // of each: the coroutine's stack, the memory, and the thread's stack

static ucontext_t outside, inside;
static char *memory;

// Allocates n bytes with the frame pointer at. There is no call frame information.
void *allocate(void *at, size_t n);
__asm__(".text\n"
		".globl allocate\n"
		".type allocate, @function\n"
		"allocate:\n\t"
		"push %rbp\n\t"
		"mov %rdi, %rbp\n\t"
		"mov %rsi, %rdi\n\t"
		"call malloc@PLT\n\t"
		"pop %rbp\n\t"
		"ret\n\t"
		".size allocate, .-allocate\n");

static void coroutine(void)
{
	for (int i = 0; i < 1000; i++)
		free(allocate(memory + 64, 1000));
	if (mprotect(memory, PART, PROT_NONE) != 0)
		abort();
	for (int i = 0; i < 1000; i++)
		free(allocate(memory + 64, 1000));
}

static void *work(void *unused)
{
	(void)unused;
	for (int i = 0; i < 1000; i++) {
		char *volatile p = malloc(1000);
		*p = 1;
		free(p);
	}
	getcontext(&inside);
	inside.uc_stack.ss_sp = memory - PART;
	inside.uc_stack.ss_size = PART;
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	swapcontext(&outside, &inside);
	return NULL;
}

int main(int argc, char **argv)
{
	char *all = mmap(NULL, 3 * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return 1;
	memory = all + PART;
	if (argc > 1 && argv[1][0] != 0) {
		// Often the loader's memory is next, in which the descriptor of the first thread lies.
		work(NULL);
		return 0;
	}
	pthread_attr_t attr;
	pthread_t t;
	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, memory + PART, PART) != 0 ||
		pthread_create(&t, &attr, work, NULL) != 0)
		return 1;
	pthread_join(t, NULL);
	return 0;
}
