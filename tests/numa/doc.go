// Package numa holds black-box tests on a machine with several memory nodes: a guest
// that vm.sh boots. Programs of testdata, and others, run there under the library, and the
// kernel is asked where their pages are.
//
// One boot serves many checks. A check is a row of a table: a shell script for the guest,
// and a function that judges, here, what it left behind.
package numa
