// Package cuda holds black-box tests of the library under programs that use CUDA, on a
// machine without a device: fake/ is a CUDA driver in the host's memory, whose streams do
// their work when the test says so, whose calls fail on demand, and which tells of each
// call that no correct program makes.
//
// The C programs in testdata print what a program can see. Most are run twice, as they
// are and with the library preloaded, and must print the same.
package cuda
