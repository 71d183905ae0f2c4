// Package stress holds black-box tests that run C programs of testdata for a long
// time under the library: storms of random operations whose every byte is
// checked, and programs whose resident memory must not grow.
package stress
