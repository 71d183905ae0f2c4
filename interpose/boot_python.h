// The Python of the calling thread (internal/pystack).
#ifndef TA_BOOT_PYTHON_H
#define TA_BOOT_PYTHON_H
#include <stdint.h>

struct ta_python {
	uintptr_t thread; // PyThreadState; 0: none
	uintptr_t minor;  // its version, as package pystack takes it
};

// The answer needs no lock of Python's.
struct ta_python ta_python_here(void);

#endif
