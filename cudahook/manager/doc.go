// Package manager is the memory managers' account book, after cubie's MemoryManager
// (github.com/ccam80/cubie). It divides the memory of a device between the components of a program:
// how much each may have and has, how requests that do not fit are cut, and which instance is
// evicted. It never calls the driver: C does what the answers ask for
// (interpose/manager_accounts.c).
//
// It is freestanding Go (docs/runtime.md).
//
// # Locks
//
// One lock for all managers is held within one call, and no other lock while it is held.
package manager
