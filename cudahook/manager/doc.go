// Package manager does the accounting of memory managers, after cubie's MemoryManager
// (github.com/ccam80/cubie). A manager divides the memory of a device between the components of a
// program. The package decides how much each may have, counts how much it has, chunks requests that
// do not fit, and chooses which instance is evicted. It never calls the driver: C carries out its
// answers (interpose/manager_accounts.c).
//
// It is freestanding Go (docs/runtime.md).
//
// # Locks
//
// One lock guards all managers. It is held within one call, and no other lock is taken meanwhile.
package manager
