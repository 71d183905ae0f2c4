// The file of settings for the whole system. It is opened here because a process that has one needs
// the tables of words, which C makes; internal/config/file.go reads it.
#include <fcntl.h>
#include "boot.h"
#include "syscall.h"

// In a process without the file this one call is all that it costs. A fifo in its place shall not
// block, nor a terminal become the process's own.
HOT long ta_config_open(void)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	return ta_sys4(SYS_openat, (uintptr_t)AT_FDCWD, (uintptr_t) "/etc/tieralloc.conf", flags, 0);
}
