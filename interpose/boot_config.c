// The configuration file of the whole system. C opens it, because a process that has one needs the
// tables of words, which C completes (ta_tables). internal/config/file.go reads it.
#include <fcntl.h>
#include "boot.h"
#include "syscall.h"

// In a process without the file this call is the whole cost. The flags are for the case that the
// name is not a file: a fifo must not block, and a terminal must not become the controlling
// terminal.
HOT long ta_config_open(void)
{
	static const char path[] HOT_DATA = "/etc/tieralloc.conf";
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	return ta_sys4(SYS_openat, (uintptr_t)AT_FDCWD, (uintptr_t)path, flags, 0);
}
