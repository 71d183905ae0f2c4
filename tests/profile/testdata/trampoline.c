// trampoline allocates from functions that call one another through code compiled at run time,
// which no object describes: CPython's perf trampolines (Python/asm_trampoline.S), as they are in
// 3.12 and, with a frame pointer, in 3.14. Compiled without frame pointers.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS = 100, SIZE = 64 << 10 };

typedef void jump(void (*to)(int), int depth);

static jump *plain, *framed;
static char *blocks[BLOCKS];

// The target is in the first argument and its argument in the second: they change places.
static const unsigned char plain_code[] = {
	0x48, 0x89, 0xf8, 0x89, 0xf7,       // mov %rdi, %rax; mov %esi, %edi
	0x48, 0x83, 0xec, 0x08, 0xff, 0xd0, // sub $8, %rsp; call *%rax
	0x48, 0x83, 0xc4, 0x08, 0xc3,       // add $8, %rsp; ret
};
static const unsigned char framed_code[] = {
	0x48, 0x89, 0xf8, 0x89, 0xf7,       // mov %rdi, %rax; mov %esi, %edi
	0x55, 0x48, 0x89, 0xe5, 0xff, 0xd0, // push %rbp; mov %rsp, %rbp; call *%rax
	0x5d, 0xc3,                         // pop %rbp; ret
};

static __attribute__((noinline)) void allocate(int none)
{
	(void)none;
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(SIZE);
		*blocks[i] = 1;
	}
}

static __attribute__((noinline)) void middle(int depth)
{
	volatile char room[64]; // a frame that only its description tells
	room[depth] = 1;
	(depth % 2 != 0 ? framed : plain)(depth > 0 ? middle : allocate, depth - 1);
	room[depth] = 2;
}

int main(void)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return 1;
	memcpy(code, plain_code, sizeof plain_code);
	memcpy(code + 2048, framed_code, sizeof framed_code);
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0)
		return 1;
	plain = (jump *)code;
	framed = (jump *)(code + 2048);
	plain(middle, 6);
	return 0;
}
