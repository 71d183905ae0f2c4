// The state that the C files share, and the life of the process: start, threads, fork, exit.
#ifndef TA_BOOT_H
#define TA_BOOT_H
#include <stdint.h>
#include <sys/types.h>
#include "heap.h"

// Modes of the library, set once at the first call.
enum { TA_UNBOOTED, TA_ACTIVE, TA_PASS };
extern int ta_mode;
// Set where summaries of pages may not be what the pages are: see alloc/summary.go.
extern int ta_torn;
// Set when the library was loaded by dlopen: malloc is another's.
extern int ta_guest;

// What the configuration asks of the C side (process.Flags).
extern struct ta_flags ta_flags;
// How often an object may have gone, so that another can be at its addresses.
extern uint64_t ta_unloads;

// Enter and leave the slow path: see boot_thread.c.
ta_heap *ta_enter(void);
ta_heap *ta_enter_heap(void);
ta_heap *ta_borrow_heap(void);
void ta_leave(ta_heap *h);

// The calling thread's name for locks: kept by it in a forked child.
uintptr_t ta_token(void);
void ta_thread_init(void);
void ta_thread_key(void);

void ta_boot(void);

// Boots, where an object's constructor calls us before our own has run.
static inline void ta_ready(void)
{
	if (UNLIKELY(ta_mode == TA_UNBOOTED))
		ta_boot();
}

// Whether the calling thread is one of this process and has thread-local storage. A child of vfork
// or of clone with CLONE_VM shares our memory and is another process; what it may call asks this
// before it uses any thread state.
int ta_thread_is_ours(void);

// Finds what the program brings of the functions that others of ours are derived from.
void ta_derived_resolve(void);
void ta_cxx_resolve(void);

// Whether this is a forked child that no fork handler has seen: a page that the
// kernel clears on fork tells.
extern volatile uint64_t *ta_alive;
static inline int ta_forked_unseen(void) { return ta_alive != NULL && *ta_alive == 0; }
void ta_fork_unseen(void);
// Registers the fork handlers, and makes that page.
void ta_fork_watch(void);
void ta_fork_mark(void);
// Notes which process this is, where ta_thread_is_ours will be asked.
void ta_record_pid(void);
// Registers for exit.
void ta_exit_watch(void);

// Called by the control plane when the Go runtime has started.
void ta_runtime_ready(void);
// Ends the control plane, for a thread of the Go runtime that cannot go on: it never returns. why
// is one of TA_STOP_…
_Noreturn void ta_runtime_fails(unsigned why);
// Called for a fatal error of the runtime, which would end the process.
_Noreturn void ta_runtime_dies(void);
// Ends the control plane at its own request.
void ta_control_fails(void);
// Maps and unmaps as the Go runtime asks, MAP_FAILED where there is no memory.
void *ta_reserved_map(void *addr, uintptr_t n, int prot, int flags, int fd, off_t offset);
void ta_reserved_unmap(void *addr, uintptr_t n);
// Returns the addresses that the Go runtime has reserved and does not use.
void ta_reserved_trim(void);
// Does what is due in the heap, for the control plane. Returns whether to come again at once.
int ta_service(void);
// Gives up the control plane where it could not run.
void ta_runtime_check(void);
// Whether Go's constructor runs only when the runtime is wanted.
int ta_go_deferred(void);
// Completes the data plane's tables of words, which are deferred until they are needed.
void ta_tables(void);
// Opens the file of settings for the whole system: a descriptor, or a negative number without one.
long ta_config_open(void);
// The signal dispositions from before Go's constructor.
void ta_signals_save(void);
void ta_signals_restore(void);

#endif
