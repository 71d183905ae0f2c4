// Attributes of functions, variables and branches in C.
#ifndef TA_ATTRIBUTE_H
#define TA_ATTRIBUTE_H

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT      __attribute__((visibility("default")))
#define NOINLINE    __attribute__((noinline))

// Code that every process runs. It is placed together, before all other code, because 64 KiB of a
// library's text become resident at a time.
#define HOT __attribute__((hot))
// Constants that every process reads (order.ld).
#define HOT_DATA __attribute__((section(".rodata.near")))

// The most frequent functions begin a cache line. At other offsets they took up to 1.3 times as
// long.
#define LINE __attribute__((aligned(64)))

#define TLS __thread __attribute__((tls_model("initial-exec")))

// The return address of the function that the program called.
#define CALLER __builtin_return_address(0)

#endif
