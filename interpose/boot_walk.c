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

// A stack is at most so large, or not all of it is read directly.
enum { LARGEST = 64 << 20 };

// The stack of the first thread ends above the random bytes that the kernel has put there, and the
// kernel maps nothing else below. Returns 0 if another stack is in use.
static uintptr_t first_top(uintptr_t here)
{
	uintptr_t top = ta_auxv(AT_RANDOM) & ~(uintptr_t)7;
	return here < top && top - here < LARGEST ? top : 0;
}

enum { PAGE = 4096 };

// The stack of the calling thread is readable from here up to the thread pointer while the thread
// runs. 0 if nothing is known.
static TLS uintptr_t readable;

// Whether all pages from here up to the thread pointer can be read now. A thread asks for a bounded
// number of pages.
static int readable_now(uintptr_t here)
{
	enum { AT_ONCE = 64, IN_ALL = 1 << 14 };
	static TLS int asked;
	uintptr_t top = readable != 0 ? readable : ta_token();
	for (int i = 0; here < top; i++, asked++) {
		top = (top - 1) & -(uintptr_t)PAGE;
		if (i == AT_ONCE || asked >= IN_ALL || !ta_readable(top))
			return 0;
	}
	return 1;
}

// The stack of any other thread ends where its thread pointer points, because glibc keeps the
// thread's descriptor there. The guard page ends the search if another stack is in use, but a
// thread may have none. Returns 0 if the bounds are unknown.
static uintptr_t thread_top(uintptr_t here)
{
	uintptr_t top = ta_token();
	if (here >= top || top - here >= LARGEST)
		return 0;
	if (readable != 0 && here >= readable)
		return top;
	if (ta_sys4(SYS_gettid, 0, 0, 0, 0) == ta_pid()) // its thread pointer is not in a stack
		return 0;
	return readable_now(here) ? top : 0;
}

static void bound(struct ta_stack *s)
{
	uintptr_t here = s->Reg[7], top = first_top(here);
	if (top == 0)
		top = thread_top(here);
	s->Low = top == 0 ? 0 : here;
	s->High = top;
}

// Notes that the thread's stack is readable from the first frame of a walk on, which has met no
// signal. If the walk got to where the stack of a thread ends, or to what is known of it, all its
// frames were there and not in a coroutine, whose stack may be unmapped while the thread runs.
static void learn(const struct ta_stack *s)
{
	enum { LEAST = 8 << 10 }; // the smallest stack is larger
	uintptr_t last = s->Reg[7], top = ta_token();
	if (s->High != top || last >= top || (readable != 0 && s->Low >= readable))
		return;
	if (top - last < LEAST || (readable != 0 && last >= readable))
		readable = s->Low & -(uintptr_t)PAGE;
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
	uintptr_t signal = 0;
	do {
		find(s);
		int own = own_start != 0 && s->Start == own_start;
		end = ta_go_sample_step((uintptr_t)s, own ? TA_UNWIND_SKIP : 0);
		signal |= s->Exact;
	} while (end == TA_UNWIND_GOING && s->N < most);
	if (end != TA_UNWIND_BROKEN && signal == 0)
		learn(s);
	return end;
}
