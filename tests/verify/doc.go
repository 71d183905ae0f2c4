// Package verify holds the built library to the rules of freestanding Go.
//
// The data plane is Go that runs without a Go runtime: on any thread, before
// main, in a forked child, with a counterfeit g. The compiler knows nothing of
// that, so what it made is checked after the fact, on the finished .so:
//
//   - image.go reads the ELF file and runs objdump over its Go text.
//   - flow.go follows one function instruction by instruction: whom it calls
//     or jumps to, how deep the stack is there, and what it must not contain.
//   - tables.go proves that an indirect jump goes through a table whose every
//     entry lies in the same function.
//   - rules.go says which functions may be reached.
//   - walk.go follows the calls from the exports, finds recursion and the
//     deepest stack, and reports each violation with the way that leads to it.
//   - cfiles_test.go holds that the files of C use each other in one direction.
//   - inits.go rejects initialisers, dynsym.go checks what the loader sees, and
//     imports.go holds the source's import graph to the order of the rooms, which
//     rooms.go lists.
//   - pageheap.go holds that some files of a package name nothing of its others.
//
// Each check has a case that must fail: the exports of testdata/fixtures/sins.go
// (what the compiler makes of forbidden Go) and of testdata/sins.S (what it does
// not make today), the graphs of imports_test.go, and testdata/border. TA_TEST_LIB=path names
// another library than build/libtieralloc.so.
//
// What the walk does not see: C code (interpose/, which is short enough to be
// read) and the loads and stores themselves (a nil
// dereference compiles to no call).
package verify
