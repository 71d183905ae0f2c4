// The state that the C files share (boot_state.c), and the life of the process: start, threads,
// fork, exit.
#ifndef TA_BOOT_H
#define TA_BOOT_H
#include <stdint.h>
#include <sys/types.h>
#include "heap.h"

// Modes of the library. The first call sets the mode, once.
enum { TA_UNBOOTED, TA_ACTIVE, TA_PASS };
extern int ta_mode;
// Set when summaries of pages may differ from the pages (alloc/summary.go).
extern int ta_torn;
// Set when the library was loaded by dlopen, so that malloc is another library's.
extern int ta_guest;

// What the configuration asks of the C files (process.Flags).
extern struct ta_flags ta_flags;
// The number of times that an object may have been unloaded. After that another object can have its
// addresses.
extern uint64_t ta_unloads;

// Notices a system call that prepares or sets a filter of system calls, or that must be made before
// there are other threads (libc_filter.c). option is the first argument. mode and program are the
// second and the third one.
void ta_notice(long number, long option, long mode, const void *program);

// Writes now, and not again, what would be written at exit (boot_exit.c).
void ta_report_last(void);

// Enter and leave the slow path (boot_thread.c).
ta_heap *ta_enter(void);
ta_heap *ta_enter_heap(void);
ta_heap *ta_enter_for_null(void);
void ta_leave(ta_heap *h);
// Notes the stack of the block that the thread of h has sampled (boot_sample.c).
void ta_sample_note(ta_heap *h);

// Carries out TA_CUDA_ACT_FORGET and TA_CUDA_ACT_SAMPLE.
void ta_sample_device(struct ta_cuda_request *r);

// The identity of the calling thread in locks. The thread keeps it in a forked child.
uintptr_t ta_token(void);
void ta_thread_init(void);
void ta_thread_key(void);

void ta_boot(void);

// Boots if the constructor of another object calls the library before the library's own has run.
static inline void ta_ready(void)
{
	if (UNLIKELY(ta_mode == TA_UNBOOTED))
		ta_boot();
}

// Whether the calling thread belongs to this process and has thread-local storage. A child of
// vfork, or of clone with CLONE_VM, shares the memory but is another process. A function that such
// a child may call asks this before it uses any state of the thread.
int ta_thread_is_ours(void);

// Find which basic functions the program defines itself, for the functions that are derived from
// them.
void ta_derived_resolve(void);
void ta_cxx_resolve(void);

// Whether this is a forked child that no fork handler has seen. The kernel clears the page at
// ta_alive on fork. NULL until ta_fork_mark.
extern volatile uint64_t *ta_alive;
static inline int ta_forked_unseen(void) { return ta_alive != NULL && *ta_alive == 0; }
void ta_fork_unseen(void);
// Registers the fork handlers.
void ta_fork_watch(void);
// Makes that page, if it is not there: before a second heap is acquired, the runtime starts, CUDA
// is used, or a filter of system calls stands.
void ta_fork_mark(void);
// Records the number of this process for ta_thread_is_ours.
void ta_record_pid(void);
// Registers the handler of exit.
void ta_exit_watch(void);

// The control plane calls this when the Go runtime has started.
void ta_runtime_ready(void);
// Ends the control plane for a thread of the Go runtime that cannot continue, and never returns.
// why is one of TA_STOP_…
_Noreturn void ta_runtime_fails(unsigned why);
// Replaces the runtime's fatal error, which would end the process.
_Noreturn void ta_runtime_dies(void);
// Ends the control plane at its own request.
void ta_control_fails(void);
// Map and unmap memory for the Go runtime. MAP_FAILED: there is no memory.
void *ta_reserved_map(void *addr, uintptr_t n, int prot, int flags, int fd, off_t offset);
void ta_reserved_unmap(void *addr, uintptr_t n);
// Unmaps the addresses that the Go runtime has reserved and does not use.
void ta_reserved_trim(void);
// Does the work that is due in the heap, for the control plane. Returns whether to call again at
// once.
int ta_service(void);
// A thread's function: carries out the order for regions of device memory that has been taken.
void *ta_region_order(void *unused);
uintptr_t ta_survey(uintptr_t survey);
uintptr_t ta_follow(uintptr_t block, uintptr_t start, uintptr_t n, uintptr_t tier);
void ta_heat(uintptr_t regions, uintptr_t n, uintptr_t ns);
int ta_distinguish(uintptr_t block, uintptr_t start, uintptr_t n, int plain);
#define TA_SLOT 512 // bytes of a slot
// Set in the threads of the control plane, whose small blocks are slots.
extern TLS int ta_in_control;
// Returns a slot of zeros, or NULL if there is none for n bytes.
void *ta_slot_take(size_t n);
int ta_slot_has(void *p);
void ta_slot_free(void *p); // a slot
// Ends the control plane if the runtime could not run here.
void ta_runtime_check(void);
// The thread that waits to start the runtime: it is about to be made, or is not; whether it is
// still wanted; whether it shall start the runtime. Until then the host may dismiss it, and do
// without background work. It is gone then, for the kernel too. Between hold, which returns its
// number if a child shall have one, too, and release it does not start the runtime.
extern uint32_t ta_waiter_bell; // rings for each event of the log that nobody reads
void ta_waiter_expect(int expected);
int ta_waiter_begin(void);
int ta_waiter_wait(void);
void ta_waiter_dismiss(void);
int ta_waiter_hold(void);
void ta_waiter_release(int tid);
// Completes the runtime's data, and finds the functions that only the runtime calls, as the loader
// would. Returns the address of Go's constructor, or 0 if one of the functions is not there.
uintptr_t ta_runtime_relocate(void);
// Completes the data plane's tables of words.
void ta_tables(void);
// Opens the configuration file of the whole system. Returns a descriptor, or a negative number.
long ta_config_open(void);

#endif
