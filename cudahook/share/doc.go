// Package share divides the memory of a device between the components of a program, after
// cubie's MemoryManager (github.com/ccam80/cubie): who may have how much, who has how much, how
// requests that do not fit are cut, and who is to give way. It keeps accounts and never calls
// the driver; C does (interpose/mm.c) what the answers ask for.
//
// It is freestanding Go (docs/runtime.md).
//
// # Locks
//
// One lock for all managers, held within one call, and no other while it is held.
package share
