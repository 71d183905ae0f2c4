// Calls syscall with a stack whose memory above the return address cannot be written: what lies
// there are variables of the caller, which other threads may change.
#include "common.h"
#include <sys/mman.h>
#include <sys/syscall.h>

static long call_below(char *top, long number)
{
	long r;
	__asm__ volatile("mov %%rsp, %%rbx\n\t"
					 "mov %2, %%rsp\n\t"
					 "call syscall@PLT\n\t"
					 "mov %%rbx, %%rsp"
					 : "=a"(r), "+D"(number)
					 : "r"(top)
					 : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return r;
}

int main(void)
{
	char *stack = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);
	char *top = stack + MIB;
	CHECK(mprotect(top, 4096, PROT_READ) == 0);
	for (int i = 0; i < 3; i++) // the first call resolves libc's
		CHECK(call_below(top, SYS_getpid) == getpid());
}
