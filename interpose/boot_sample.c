// The stack of a sampled block (alloc/sampled.go).
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include "boot.h"
#include "exports.h"
#include "libc_symbol.h"

// What _dl_find_object of glibc 2.35 fills in (dlfcn.h). It takes no lock.
struct found {
	unsigned long long flags;
	void *start, *end;
	struct link_map *map;
	void *eh_frame_header;
	unsigned long long reserved[7];
};

// What is attached to the probes (boot_probes_amd64.S).
extern const char ta_tracers[];

static int (*look_up)(void *, struct found *);
static uintptr_t own_start; // of this library

static void prepare(void)
{
	if (look_up != NULL)
		return;
	*(void **)&look_up = ta_symbol_next("_dl_find_object");
	struct found o;
	if (look_up != NULL && look_up((void *)ta_sample_note, &o) == 0)
		own_start = (uintptr_t)o.start;
}

// Tells the walk which object its frame is in.
static void find(struct ta_stack *s)
{
	struct found o;
	s->Start = s->End = s->Map = s->Header = 0;
	if (look_up == NULL || look_up((void *)(s->PC - 1 + s->Exact), &o) != 0)
		return;
	s->Start = (uintptr_t)o.start;
	s->End = (uintptr_t)o.end;
	s->Map = (uintptr_t)o.map;
	s->Header = (uintptr_t)o.eh_frame_header;
}

// The stack of the first thread ends above the random bytes that the kernel has put there. It
// begins so far below at most, and the kernel maps nothing else between.
static void bound(struct ta_stack *s)
{
	enum { LARGEST = 64 << 20 };
	uintptr_t here = s->Reg[7];
	uintptr_t top = ta_auxv(AT_RANDOM) & ~(uintptr_t)7;
	s->Low = s->High = 0;
	if (here < top && top - here < LARGEST) {
		s->Low = here;
		s->High = top;
	}
}

NOINLINE void ta_sample_note(ta_heap *h)
{
	struct ta_stack *s = (struct ta_stack *)ta_go_sample_begin((uintptr_t)h, (uintptr_t)ta_tracers);
	if (s == NULL)
		return;
	prepare();
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
	s->Unloads = __atomic_load_n(&ta_unloads, __ATOMIC_RELAXED);
	bound(s);
	unsigned long end;
	do {
		find(s);
		int own = own_start != 0 && s->Start == own_start;
		end = ta_go_sample_step((uintptr_t)s, own ? TA_UNWIND_SKIP : 0);
	} while (end == TA_UNWIND_GOING);
	ta_go_sample_end((uintptr_t)h, end);
}
