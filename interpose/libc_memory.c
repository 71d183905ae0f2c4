// Memory is returned through libc where a registration cache watches.
//
// MPI libraries, UCX and libfabric keep memory that was sent or received registered with the
// network adapter. To learn when the program gives it back, they overwrite the first bytes of
// libc's munmap, mremap and madvise with a jump to functions of their own. The heap calls the
// kernel, so they would not learn of it, and the adapter would go on using the physical memory that
// an address had before. So once munmap has been overwritten, every call that takes physical memory
// from an address goes through libc. UCX's mremap has no parameter for a new address, so such a
// request fails, and the heap does without, as with a kernel that refuses it.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include "boot.h"
#include "libc_symbol.h"
#include "syscall.h"

static struct {
	__typeof__(&munmap) munmap;
	__typeof__(&mremap) mremap;
	__typeof__(&madvise) madvise;
} libc;

static int known(void)
{
	const struct ta_symbols *s = ta_libc_symbols();
	if (libc.munmap != NULL)
		return 1;
	if (s->all == NULL)
		return 0;
	libc.madvise = (__typeof__(&madvise))ta_symbol(s, "madvise");
	libc.mremap = (__typeof__(&mremap))ta_symbol(s, "mremap");
	__typeof__(&munmap) f = (__typeof__(&munmap))ta_symbol(s, "munmap");
	__atomic_store_n(&libc.munmap, f, __ATOMIC_RELEASE); // last: another thread may look
	return f != NULL;
}

// Whether munmap begins otherwise than with the number of its system call.
static int watched(void)
{
	static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const unsigned char first[] = {0xb8, SYS_munmap, 0, 0, 0}; // mov $11, %eax
	if (!known())
		return 0;
	const unsigned char *code = (const unsigned char *)libc.munmap;
	if (memcmp(code, endbr64, sizeof endbr64) == 0)
		code += sizeof endbr64;
	return memcmp(code, first, sizeof first) != 0;
}

// Makes the system call in place of ta_syscall6 (boot_gate_amd64.S). Returns its result, or
// LONG_MIN if nobody has to know of the call.
long ta_memory_call(long nr, uintptr_t addr, uintptr_t n, uintptr_t c, uintptr_t flags)
{
	int bars = nr == SYS_mmap && c == PROT_NONE && flags & MAP_FIXED;
	int discards = nr == SYS_madvise && c == MADV_DONTNEED;
	if (!(bars || discards || nr == SYS_munmap || nr == SYS_mremap) || !watched())
		return LONG_MIN;
	int saved = errno;
	long r = LONG_MIN;
	if (nr == SYS_munmap)
		r = libc.munmap((void *)addr, n);
	else if (nr == SYS_madvise)
		r = libc.madvise((void *)addr, n, MADV_DONTNEED);
	else if (nr == SYS_mmap)
		libc.madvise((void *)addr, n, MADV_DONTNEED);
	else if (flags & ~(uintptr_t)MREMAP_MAYMOVE)
		return -EINVAL;
	else
		r = (long)libc.mremap((void *)addr, n, c, (int)flags);
	if (r == -1)
		r = -errno;
	errno = saved;
	return r;
}
