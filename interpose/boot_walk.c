#define _GNU_SOURCE
#include <elf.h>
#include <stddef.h>
#include "boot.h"
#include "boot_walk.h"
#include "exports.h"
#include "libc_symbol.h"
#include "syscall.h"

// The result of _dl_find_object (dlfcn.h).
struct found {
	unsigned long long flags;
	void *start, *end;
	struct link_map *map;
	void *eh_frame_header;
	unsigned long long reserved[7];
};

static int (*look_up)(void *, struct found *);
static uintptr_t own_start; // of this library

void ta_walk_prepare(void)
{
	*(void **)&look_up = ta_symbol_next("_dl_find_object");
	struct ta_object own;
	if (ta_object_of((uintptr_t)ta_walk, &own))
		own_start = own.start;
}

int ta_object_of(uintptr_t address, struct ta_object *o)
{
	struct found f;
	if (look_up == NULL || look_up((void *)address, &f) != 0 || f.map == NULL)
		return 0;
	o->start = (uintptr_t)f.start;
	o->end = (uintptr_t)f.end;
	o->map = f.map;
	o->header = (uintptr_t)f.eh_frame_header;
	return 1;
}

// Tells the walk which object its frame is in.
static void find(struct ta_stack *s)
{
	uintptr_t at = s->PC - 1 + s->Exact;
	struct ta_object o = {0};
	if (at - s->Start < s->End - s->Start)
		return;
	ta_object_of(at, &o);
	s->Start = o.start;
	s->End = o.end;
	s->Map = (uintptr_t)o.map;
	s->Header = o.header;
}

// The stack of the first thread ends above the random bytes that the kernel has put there. It
// begins so far below at most, and the kernel maps nothing else between. Returns 0 if another stack
// is in use.
static uintptr_t first_top(uintptr_t here)
{
	enum { LARGEST = 64 << 20 };
	uintptr_t top = ta_auxv(AT_RANDOM) & ~(uintptr_t)7;
	return here < top && top - here < LARGEST ? top : 0;
}

// Finds in glibc's descriptor of a thread, which lies at its thread pointer, the address and the
// size of its stack, and the size of the guard, which is the part with the lowest addresses
// (stackblock, stackblock_size and guardsize of struct pthread). Their place differs from version
// to version. The stack contains the descriptor and ends soon after it. Returns the stack's lowest
// address, or UINTPTR_MAX if there is none: the descriptor of the first thread is not in a stack.
static uintptr_t stack_of(uintptr_t descriptor)
{
	enum { SCANNED = 2048, AFTER = 8192 }; // a descriptor has 2304 bytes
	const uintptr_t most = (uintptr_t)1 << 40, *w = (const uintptr_t *)descriptor;
	if (!ta_readable(descriptor + SCANNED - 4))
		return UINTPTR_MAX;
	for (; (uintptr_t)(w + 3) <= descriptor + SCANNED; w++) {
		uintptr_t before = descriptor - w[0];
		if (before - 1 < most && w[1] - before - 1 < AFTER && w[2] < before)
			return w[0] + w[2];
	}
	return UINTPTR_MAX;
}

// The stack of any other thread ends with its descriptor. Returns 0 if another stack is in use.
static uintptr_t thread_top(uintptr_t here)
{
	static TLS uintptr_t low;
	uintptr_t top = ta_token();
	if (low == 0)
		low = stack_of(top);
	return low <= here && here < top ? top : 0;
}

static void bound(struct ta_stack *s)
{
	uintptr_t here = s->Reg[7], top = first_top(here);
	if (top == 0)
		top = thread_top(here);
	s->Low = top == 0 ? 0 : here;
	s->High = top;
}

NOINLINE unsigned long ta_walk(struct ta_stack *s, uintptr_t most)
{
	// The registers that DWARF calls 3, 6, 7 and 12 to 15, and where they were read.
	__asm__ volatile(
		"mov %%rbx, 24(%0)\n\t"
		"mov %%rbp, 48(%0)\n\t"
		"mov %%rsp, 56(%0)\n\t"
		"mov %%r12, 96(%0)\n\t"
		"mov %%r13, 104(%0)\n\t"
		"mov %%r14, 112(%0)\n\t"
		"mov %%r15, 120(%0)\n\t"
		"lea 0(%%rip), %%rax\n\t"
		"mov %%rax, %c1(%0)"
		:
		: "r"(s->Reg), "i"(offsetof(struct ta_stack, PC) - offsetof(struct ta_stack, Reg))
		: "rax", "memory");
	s->Exact = 1;
	s->Start = s->End = 0;
	s->Unloads = __atomic_load_n(&ta_unloads, __ATOMIC_RELAXED);
	bound(s);
	unsigned long end;
	do {
		find(s);
		int own = own_start != 0 && s->Start == own_start;
		end = ta_go_sample_step((uintptr_t)s, own ? TA_UNWIND_SKIP : 0);
	} while (end == TA_UNWIND_GOING && s->N < most);
	return end;
}
