// Package selftest holds tests of the script that tests on a device, tests/gpu/run.sh, without
// one: every program that it runs is a stub.
package selftest
