// System calls that neither libc nor another preloaded library sees. They use no function that
// could be interposed, no errno and no thread-local storage. They work in a child of clone with an
// invalid thread pointer.
#ifndef TA_SYSCALL_H
#define TA_SYSCALL_H
#include <stdint.h>
#include <sys/syscall.h>

// The result of the kernel: -errno on failure.
static inline long ta_sys(
	long nr, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
{
	register uintptr_t r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;
	__asm__ volatile("syscall"
					 : "=a"(r)
					 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
					 : "rcx", "r11", "memory");
	return r;
}

static inline long ta_sys4(long nr, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
	return ta_sys(nr, a, b, c, d, 0, 0);
}

static inline long ta_pid(void) { return ta_sys4(SYS_getpid, 0, 0, 0, 0); }

// Whether the word at a, a multiple of 4, is readable. The kernel reads it on a request to wake no
// thread if the word is 0.
static inline int ta_readable(uintptr_t a)
{
	enum { CMP_REQUEUE_PRIVATE = 4 | 128, FAULT = -14 }; // of linux/futex.h, and -EFAULT
	return ta_sys(SYS_futex, a, CMP_REQUEUE_PRIVATE, 0, 0, a, 0) != FAULT;
}

// Writes a line to standard error, where there is one.
static inline void ta_say(const char *line)
{
	const char *end = line;
	while (*end != 0)
		end++;
	ta_sys4(SYS_write, 2, (uintptr_t)line, (uintptr_t)(end - line), 0);
}

#endif
