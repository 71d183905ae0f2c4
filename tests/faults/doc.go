// Package faults lets a program work while the kernel refuses what the library asks of
// it: each call of a kind in turn, alone or with all that follow, by way of ptrace; and
// for want of address space, mappings or memory.
package faults
