// Package process holds black-box tests of what a program meets when the library
// is preloaded: glibc's semantics, a process's life from the loader to its last
// destructor, wrong use, configuration, and the statistics at the end.
//
// Each C program in testdata is a set of small cases, chosen by its first
// argument. A case that finds something wrong says so on standard output and
// ends with status 1; what a case prints besides is for the Go side to judge.
package process
