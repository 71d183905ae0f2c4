// Package system holds a black-box test of a whole system: a Debian root in which
// every program has the library, by /etc/ld.so.preload. It runs only where TA_TEST_SYSTEM is set.
package system
