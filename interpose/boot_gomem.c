// Memory for the Go runtime, if it starts.
//
// The runtime gets its memory from cgo's functions x_cgo_mmap and x_cgo_munmap. The linker's --wrap
// redirects these to this file. The memory is placed on the nodes of the slowest tier
// (alloc.PlacementControl).
//
// The runtime ends the process when it gets no memory. This file stops the runtime's thread
// instead, which ends the control plane, and the host continues.
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "boot.h"
#include "exports.h"

uintptr_t __wrap_x_cgo_mmap(
	void *addr, uintptr_t n, int32_t prot, int32_t flags, int32_t fd, uint32_t offset)
{
	void *p = ta_reserved_map(addr, n, prot, flags, fd, offset);
	if (p == MAP_FAILED)
		ta_runtime_fails(TA_STOP_MEMORY);
	if (prot & PROT_WRITE)
		ta_go_control_place((uintptr_t)p, n);
	return (uintptr_t)p;
}

void __wrap_x_cgo_munmap(void *addr, uintptr_t n) { ta_reserved_unmap(addr, n); }

// cgo ends the process when malloc has no block for it. The next calls of the same thread find the
// blocks that are freed here.
static void need_blocks(void)
{
	void *blocks[4];
	for (unsigned i = 0; i < 4; i++)
		if ((blocks[i] = malloc((size_t)16 << i)) == NULL)
			ta_runtime_fails(TA_STOP_MEMORY);
	for (unsigned i = 0; i < 4; i++)
		free(blocks[i]);
}

void __real_x_cgo_init(void *g, uintptr_t set);
void __wrap_x_cgo_init(void *g, uintptr_t set)
{
	need_blocks();
	__real_x_cgo_init(g, set);
}

void __real_x_cgo_thread_start(void *start);
void __wrap_x_cgo_thread_start(void *start)
{
	need_blocks();
	__real_x_cgo_thread_start(start);
}
