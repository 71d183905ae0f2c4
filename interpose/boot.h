// Life of the process: start, fork, exit.
#ifndef TA_BOOT_H
#define TA_BOOT_H
#include <stdint.h>
#include "heap.h"

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

// Called in a forked child: nobody opens a library there yet.
void ta_deepbind_forked(void);

// Whether this is a forked child that no fork handler has seen: a page that the
// kernel clears on fork tells.
extern volatile uint64_t *ta_alive;
static inline int ta_forked_unseen(void) { return ta_alive != NULL && *ta_alive == 0; }
void ta_fork_unseen(void);

// Set when the configuration asks for the control plane: the Go runtime starts.
extern int ta_wants_runtime;
// Called by the control plane when the Go runtime has started.
void ta_runtime_ready(void);
// Ends the control plane, for a thread of the Go runtime that cannot go on: it never returns. why
// is one of TA_STOP_…
_Noreturn void ta_runtime_fails(unsigned why);
// What the runtime's fatal errors come to, instead of ending the process.
_Noreturn void ta_runtime_dies(void);
// Ends the control plane at its own wish.
void ta_control_fails(void);
// Gives back the addresses that the Go runtime has reserved and does not use.
void ta_runtime_trim(void);
// What is due in the heap, for the control plane. Whether to come again at once.
int ta_service(void);
// Gives up the control plane where it could not run.
void ta_runtime_check(void);
// Whether Go's constructor runs only when the runtime is wanted.
int ta_go_deferred(void);
// Makes the data plane's tables of words whole, which are left until they are needed.
void ta_tables(void);
// The signal dispositions from before Go's constructor.
void ta_signals_save(void);
void ta_signals_restore(void);

#endif
